"""Show three lists to simulated users, and print the clicks and how many clicks each list loses.

python examples/show_a_list.py
"""

import gymnasium as gym

import clickgym  # registers the environments; gym.make("clickgym:PBMRank-v0") needs no import

print(f"clickgym {clickgym.__version__}: a query with ten documents, and lists of five of them")
env = gym.make("PBMRank-v0")
observation, info = env.reset(seed=5)
print("the best list, which an algorithm is never told:", info["optimal_ranking"])

for ranking in ([0, 1, 2, 3, 4], [9, 8, 7, 4, 2], [2, 4, 7, 8, 9]):
    clicks, reward, terminated, truncated, info = env.step(ranking)
    print(f"list {ranking}  clicks {clicks}  clicks lost on average {info['regret']:.3f}")

total, lost, truncated = 0.0, 0.0, False
observation, info = env.reset(seed=6)
env.action_space.seed(6)
while not truncated:  # an episode has 1,000 sessions
    clicks, reward, terminated, truncated, info = env.step(env.action_space.sample())
    total, lost = total + reward, lost + info["regret"]
print(f"random lists get {total:.0f} clicks in an episode, and lose {lost:.0f} against the best")
