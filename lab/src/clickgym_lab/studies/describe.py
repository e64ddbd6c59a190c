"""Description of a study in words, which `clickgym show` prints."""

from __future__ import annotations

from clickgym.runner import Description, TableOfWords

from .registry import STUDIES


def describe_study(name: str) -> Description:
    """Describe a study: its paper, its environments and agents, and the statements that it judges.

    Args:
        name: of `STUDIES`.

    Example:
        >>> described = describe_study("zoghi-fig1")
        >>> described.facts["paper"], [table.title for table in described.tables]
        ('Zoghi et al. 2017, figure 1', ['What it plays in full (--scale 1)', 'Statements that it judges'])
    """
    study = STUDIES[name]
    parts = [
        (part.name, f"{part.horizon:,}", str(part.runs), str(part.queries), ", ".join(part.envs), ", ".join(part.agents))
        for part in study.parts
    ]
    statements = [(statement.text, statement.rule, statement.paper) for statement in study.statements]
    facts = {
        "paper": study.paper,
        "notes": study.notes,
        "findings": f"docs/studies/{name}.md, from lab/results/{name}.parquet",
        "run it": f"clickgym study {name} --scale 0.01 --out DIR",
    }
    heads = ("part", "sessions", "runs", "queries", "environments", "agents")
    tables = [
        TableOfWords("What it plays in full (--scale 1)", heads, parts),
        TableOfWords("Statements that it judges", ("statement", "supported if", "the paper reports"), statements),
    ]
    return Description("study", name, study.title, {key: text for key, text in facts.items() if text}, tables)
