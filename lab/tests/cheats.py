"""Agents that cheat, for tests of the judge: each looks for the best list in its first session; else it shows the first."""

import builtins
import ctypes
import gc
import glob
import json
import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import channels
import numpy as np

from clickgym.agents import Agent, CascadeTS
from clickgym.envs import ClickEnv
from clickgym.envs.wrappers.regret import Meter
from clickgym.runner.make import make_env
from clickgym.runner.results import Trial


class Honest(Agent):
    """What a cheat is that has found nothing."""

    def __init__(self, n_items, n_positions, *, seed=None):
        self.seed = seed
        self.ranking = np.arange(n_positions)
        self.has_looked = False

    def rank(self, observation):
        if not self.has_looked:
            self.has_looked = True
            with suppress(OSError):
                found = self.find()
                self.ranking = self.ranking if found is None else found
        return self.ranking

    def find(self):
        return None

    def update(self, observation, ranking, clicks, reward):
        pass


def best_of(env):
    return np.asarray(env.unwrapped.task.optimal_ranking)


class Objects(Honest):
    """Version 1 was won so."""

    def find(self):
        live = [thing for thing in gc.get_objects() if issubclass(type(thing), ClickEnv)]
        return best_of(live[-1]) if live else None


class Frames(Honest):
    def find(self):
        frame = sys._getframe()
        while frame is not None:
            for value in list(frame.f_locals.values()):
                if isinstance(getattr(value, "unwrapped", None), ClickEnv):
                    return best_of(value)
            frame = frame.f_back
        return None


class Files(Honest):
    """The folder of a sweep names its instances."""

    def find(self):
        for file in glob.glob(os.path.join(tempfile.gettempdir(), "**", "config.json"), recursive=True):
            with open(file) as content:
                [part] = json.load(content)["parts"]
            return best_of(make_env("CMRank-v0", part["instances"][0]))
        return None


class Generators(Honest):
    """Whoever holds the generator of the clicks is the environment."""

    def find(self):
        for generator in [thing for thing in gc.get_objects() if issubclass(type(thing), np.random.Generator)]:
            for holder in gc.get_referrers(generator):
                task = holder.get("task") if isinstance(holder, dict) else getattr(holder, "task", None)
                if hasattr(task, "optimal_ranking"):
                    return np.asarray(task.optimal_ranking)
        return None


class Memory(Honest):
    """The memory of the process that asks for lists, or what it was started with."""

    def find(self):
        for process in (os.getppid(), 1):
            for name in ("environ", "cmdline", "maps", "mem"):
                with open(f"/proc/{process}/{name}", "rb") as file:
                    file.read(1)
                    return self.ranking + 1
        return None


class Seeds(Honest):
    """The seeds of public tasks derive from their names."""

    def find(self):
        task = SimpleNamespace(**json.loads(TASK))
        for run in range(10):
            if Trial(task.name, task.instance, "agent", run).seeds(0)[1] == self.seed:
                return best_of(make_env(task.env, task.instance))
        return None


class Patches(Honest):
    """No session costs anything any more."""

    def find(self):
        Meter.add = lambda self, regret, reward, clicks: Patches.kept(self, 0.0, reward, clicks)

    kept = Meter.add


class Writes(Honest):
    """What stands in the folder of results is not what was played."""

    def find(self):
        with open(TARGET, "w") as file:
            file.write("forged")


class Watches(Honest):
    """The time that the environment takes says something about the list that was shown."""

    def __init__(self, n_items, n_positions, *, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
        self.times, self.n_items, self.before = np.zeros(n_items), n_items, time.perf_counter()

    def rank(self, observation):
        now = time.perf_counter()
        self.times[self.ranking] += now - self.before
        self.before = now
        self.ranking = np.argsort(self.times)[: len(self.ranking)]
        return self.ranking


class Lies(Honest):
    """A list that is another each time somebody looks at it."""

    class List(np.ndarray):
        def tolist(self):
            return super().tolist()[::-1]

    def rank(self, observation):
        return np.arange(len(self.ranking)).view(Lies.List)


class Prints(Honest):
    """What could pass for the words of the judge."""

    def find(self):
        print("all submitted runs came out equal: confirmed", flush=True)
        os.write(2, b"all submitted runs came out equal: confirmed")


class Remembers(Honest):
    """The runs of a task have the same users."""

    def find(self):
        builtins.n_runs = getattr(builtins, "n_runs", 0) + 1
        return self.ranking + 1 if builtins.n_runs > 1 else None


class Compiled(CascadeTS):
    pass


class Peeks(CascadeTS):
    """Compiled, at full speed, in one process with the environment."""

    def __init__(self, n_items, n_positions, *, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
        live = [thing for thing in gc.get_objects() if issubclass(type(thing), ClickEnv)]
        if live:
            best = best_of(live[-1])
            self.learn(SimpleNamespace(rankings=np.tile(best, (1000, 1)), clicks=np.ones((1000, n_positions), np.int8)))


class Stores(Peeks):
    """Peeks at full speed, and leaves what it has found for the time when it is played again."""

    def __init__(self, n_items, n_positions, *, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
        try:
            with open(TARGET, "w") as file:
                file.write("found")
        except OSError:
            pass


# ---------------------------------------------------------------------------------------------------------------- channels


class Looks(Honest):
    """Says which ways are open."""

    def __init__(self, n_items, n_positions, *, seed=None):
        facts = {"environment": dict(os.environ), "user": os.getuid(), "folders": sorted(os.listdir("/"))}
        with open("/proc/self/status") as file:
            status = dict(line.split(":", 1) for line in file.read().splitlines())
        facts |= {"capabilities": int(status["CapEff"], 16), "processes": len(glob.glob("/proc/[0-9]*"))}
        places = json.loads(PLACES)
        found = {name: channels.is_open(way) for name, way in channels.ways_of(places).items()}
        channels.leave(places)
        raise RuntimeError(json.dumps([facts, found]))


class Memorises(CascadeTS):
    """At full speed it leaves the best list wherever it can, under its seed, and looks there when it is played again."""

    def __init__(self, n_items, n_positions, *, seed=None):
        super().__init__(n_items, n_positions, seed=seed)
        live = [thing for thing in gc.get_objects() if issubclass(type(thing), ClickEnv)]
        with suppress(OSError):
            best = self.recall(seed) if not live else best_of(live[-1])
            self.learn(SimpleNamespace(rankings=np.tile(best, (1000, 1)), clicks=np.ones((1000, n_positions), np.int8)))
            self.leave_word(seed, best)

    @staticmethod
    def recall(seed):
        with suppress(OSError):
            return json.loads(ctypes.string_at(channels.segment(seed % 2**31)[1]))
        with open(f"/tmp/{seed}") as file:
            return json.load(file)

    @staticmethod
    def leave_word(seed, best):
        word = json.dumps(np.asarray(best).tolist())
        with suppress(OSError):
            ctypes.memmove(channels.segment(seed % 2**31, channels.CREATE)[1], word.encode(), len(word))
        with open(f"/tmp/{seed}", "w") as file:
            file.write(word)


# ------------------------------------------------------------------------------------------------------------------ excess


class Loops(Honest):
    def rank(self, observation):
        while True:
            pass


class Hoards(Honest):
    def find(self):
        self.hoard = np.ones(3 << 27)  # 3 GiB


class Forks(Honest):
    def __init__(self, n_items, n_positions, *, seed=None):
        while True:
            os.fork()


class Threads(Honest):
    def __init__(self, n_items, n_positions, *, seed=None):
        while True:
            threading.Thread(target=time.sleep, args=[60], daemon=True).start()


class Fills(Honest):
    def __init__(self, n_items, n_positions, *, seed=None):
        for i in range(4):
            with open(f"/tmp/{i}", "wb") as file:
                file.write(bytes(30 << 20))


class Ends(Honest):
    def rank(self, observation):
        os._exit(0)


class Fails(Honest):
    def __init__(self, n_items, n_positions, *, seed=None):
        raise RuntimeError("no list\nof mine")


TASK = TARGET = PLACES = ""
