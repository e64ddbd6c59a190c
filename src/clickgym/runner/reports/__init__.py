"""Tables, words, figures, Markdown, LaTeX and the page of a finished sweep."""
