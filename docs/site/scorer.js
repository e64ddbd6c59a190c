/* How the search of the website orders pages: Sphinx's own scores, but a heading that has all of the query comes first. */
var Scorer = {
  score: ([page, title, anchor, description, score, file, kind]) => score + (kind === "title" ? 20 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
