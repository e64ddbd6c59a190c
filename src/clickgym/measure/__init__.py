"""Measurements of a run: cumulative regret, reward and clicks, additional metrics, the wrappers
that record them while your own loop runs, and the class `Result`.

The regret of a session is the expected reward of the best list minus that of the list shown. Four
places subtract: ``step`` of `ClickEnv` and of `ClickVectorEnv`, which put the regret into ``info``;
the compiled loop (`clickgym.runner.play.compiled_loop`), which makes no ``info``; and `regret_of`
in ``session_reader``, for environments of other packages whose ``info`` has only the two rewards.
`meter` adds up the regrets of the sessions, and `record_regret` does so in your own loop.
"""
