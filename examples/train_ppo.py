"""Train PPO from stable-baselines3, evaluate and save it meanwhile, and compare it with bandits.

python examples/train_ppo.py

docs/rl.md explains the settings and how to evaluate without luck, and says when RL pays.
"""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback

import clickgym
from clickgym.agents import FrozenPolicy, PlackettLuceActorCritic, RegretCallback, vec_env

if __name__ == "__main__":
    torch.set_num_threads(1)  # small networks: more threads are slower
    envs = vec_env("PBMRank-v0", 64, seed=0)  # 64 users at a time
    # separate users, for an evaluation by regret, in which luck with the clicks plays no role
    others = vec_env("PBMRank-v0", 10, seed=50_000, minus_regret=True)
    model = PPO(
        PlackettLuceActorCritic,  # draws whole lists
        envs,
        gamma=0.0,  # because no list changes later rewards
        n_steps=4,  # an update every 64 * 4 sessions
        batch_size=128,
        n_epochs=4,
        learning_rate=1e-3,
        seed=0,
        tensorboard_log=None,  # or "ppo", to see curves with tensorboard --logdir ppo
    )
    evaluate = EvalCallback(
        others, best_model_save_path="ppo", n_eval_episodes=10, eval_freq=100, verbose=0
    )
    model.learn(20_480, [RegretCallback(), evaluate, CheckpointCallback(160, "ppo")])

    best = PPO.load("ppo/best_model")  # load only files that you trust
    frozen = clickgym.run(FrozenPolicy(model=best), "PBMRank-v0", 10_000, seed=1)
    print(f"the best policy loses {frozen.regret[-1]:.0f} clicks in 10,000 sessions")

    bandits = clickgym.sweep(["PBMRank-v0"], ["CascadeTS", "Random"], 20_480, runs=3)
    print(clickgym.Results([bandits, envs.result("PPO", trained=0)]))
