"""The simulated users of online learning to rank: what they do at a document, by its grade of relevance."""

GRADED_USERS: dict[int, dict[str, dict[str, list[float]]]] = {
    2: {
        "perfect": {"click": [0.0, 1.0], "stop": [0.0, 0.0]},
        "navigational": {"click": [0.05, 0.95], "stop": [0.2, 0.9]},
        "informational": {"click": [0.4, 0.9], "stop": [0.1, 0.5]},
        "almost_random": {"click": [0.4, 0.6], "stop": [0.5, 0.5]},
    },
    3: {
        "perfect": {"click": [0.0, 0.5, 1.0], "stop": [0.0, 0.0, 0.0]},
        "navigational": {"click": [0.05, 0.5, 0.95], "stop": [0.2, 0.5, 0.9]},
        "informational": {"click": [0.4, 0.7, 0.9], "stop": [0.1, 0.3, 0.5]},
        "almost_random": {"click": [0.4, 0.5, 0.6], "stop": [0.5, 0.5, 0.5]},
    },
    5: {
        "perfect": {"click": [0.0, 0.2, 0.4, 0.8, 1.0], "stop": [0.0, 0.0, 0.0, 0.0, 0.0]},
        "navigational": {"click": [0.05, 0.3, 0.5, 0.7, 0.95], "stop": [0.2, 0.3, 0.5, 0.7, 0.9]},
        "informational": {"click": [0.4, 0.6, 0.7, 0.8, 0.9], "stop": [0.1, 0.2, 0.3, 0.4, 0.5]},
        "almost_random": {"click": [0.4, 0.45, 0.5, 0.55, 0.6], "stop": [0.5, 0.5, 0.5, 0.5, 0.5]},
    },
}
"""By number of grades and name: the probability of a click, and of stopping after one, from grade 0 up."""
