"""How well a wrong f can be repaired at all: a learner that is told the law of W, the prior of the offsets and the end.

``python benchmarks/repair_yardstick.py [worlds] [name]``, in the worlds of ``evidence.py repair`` whose f is wrong. It
keeps the exact posterior of every offset, plans with the means, and tries a pair where what knowing it would bring in
all the episodes to come is worth the price. Plain numpy, some seconds a world.
"""

import sys

import numpy as np
from repair_worlds import kinds_of_world, made

import ucbf


class Yardstick:
    """Offsets d = -half..half of f as told, and what is believed of them; L[h, d, j] the chance of residual j."""

    def __init__(self, world: ucbf.World, told: ucbf.System, half: int) -> None:
        self.H, self.S, self.A = told.f.shape
        self.world, self.first, self.reward = world, told.f[0].astype(int), told.reward[0][:, 0]
        law, d = np.broadcast_to(world.law.pmf, (self.H, world.law.pmf.shape[1])), np.arange(-half, half + 1)
        chances = np.zeros((self.H, self.S))
        for h in range(self.H):
            np.add.at(chances[h], (np.arange(law.shape[1]) + world.law.low) % self.S, law[h])
        self.spectrum = np.conj(np.fft.rfft(chances))
        self.L = np.array([[np.roll(row, by) for by in d] for row in chances])
        self.after = (self.first[..., None] + d) % self.S
        # f was moved by any of -half..half and kept among the states: at an edge, several moves lead there.
        f = self.first[..., None] + d
        prior = np.where((f >= 0) & (f < self.S), 1.0, 0.0)
        edge = np.where(self.first == 0, 0, self.S - 1)[..., None]
        at_edge = ((self.first == 0) | (self.first == self.S - 1))[..., None]
        prior *= np.where(at_edge, np.maximum(half + 1 - np.abs(f - edge), 0), 1.0)
        self.posterior = prior / prior.sum(axis=2, keepdims=True)
        self.resolves = np.ones((self.H, self.S, self.A))  # how much of the doubt one residual of step h resolves
        self.stale = np.ones((self.S, self.A), bool)

    def plan(self) -> tuple[np.ndarray, np.ndarray]:
        """Q [H, S, A] by the means over offsets, and what follows after-states [H, S]."""
        q, ahead, value = np.empty((self.H, self.S, self.A)), np.empty((self.H, self.S)), np.zeros(self.S)
        for h in range(self.H - 1, -1, -1):
            ahead[h] = np.fft.irfft(np.fft.rfft(value) * self.spectrum[h], self.S)
            q[h] = (self.posterior * ahead[h][self.after]).sum(axis=2)
            value = self.reward + q[h].max(axis=1)
        return q, ahead

    def policy(self, left: int) -> np.ndarray:
        """[H, S] the best action, or the pair whose knowledge in the ``left`` episodes to come is worth more."""
        q, ahead = self.plan()
        likeliest = np.take_along_axis(self.after, self.posterior.argmax(axis=2)[..., None], 2)[..., 0]
        visits, gain, at = np.empty((self.H, self.S)), np.zeros((self.S, self.A)), np.full(self.S, 1 / self.S)
        for h in range(self.H):
            visits[h], best = at, np.sort(q[h], axis=1)
            rival = np.where(q[h] == best[:, -1:], best[:, -2:-1], best[:, -1:])
            known = (self.posterior * np.maximum(ahead[h][self.after], rival[..., None])).sum(axis=2)
            gain += at[:, None] * (known - np.maximum(q[h], rival))
            mass = np.bincount(likeliest[np.arange(self.S), q[h].argmax(axis=1)], at, self.S)
            at = np.maximum(np.fft.irfft(np.fft.rfft(mass) * np.conj(self.spectrum[h]), self.S), 0)
        self.look()
        price = q.max(axis=2, keepdims=True) - q
        often = np.broadcast_to(visits[..., None], price.shape)
        order = price.argsort(axis=0)
        cheap, times = np.take_along_axis(price, order, 0), np.take_along_axis(often, order, 0)
        limit = ((gain + (cheap * times).cumsum(axis=0)) / np.maximum(times.cumsum(axis=0), 1e-12)).min(axis=0)
        mean = self.resolves.mean(axis=0)
        worth = np.minimum(left * gain * mean, limit) * self.resolves / np.maximum(mean, 1e-12)
        chosen: np.ndarray = (q + worth).argmax(axis=2)
        return chosen

    def look(self) -> None:
        """Renew ``resolves`` of the pairs with news: by how much one residual brings the posterior to one offset."""
        s, a = np.nonzero(self.stale)
        posterior = self.posterior[s, a]
        doubt = np.maximum(1 - (posterior**2).sum(axis=1), 1e-9)
        for h in range(self.H if len(s) else 0):
            both = posterior[:, :, None] * self.L[h]
            after = ((both**2).sum(axis=1) / np.maximum(both.sum(axis=1), 1e-300)).sum(axis=1)
            self.resolves[h, s, a] = (after - (1 - doubt)) / doubt
        self.stale[:] = False

    def learn(self, h: int, s: int, a: int, s_next: int) -> None:
        """Bayes' rule."""
        chance = self.posterior[s, a] * np.maximum(self.L[h, :, (s_next - self.first[s, a]) % self.S], 1e-12)
        self.posterior[s, a], self.stale[s, a] = chance / chance.sum(), True

    def regret(self, episodes: int, seed: int) -> float:
        """Of so many episodes."""
        world, total, gap, last = self.world, 0.0, 0.0, b""
        start, w = world.draw(episodes, seed)
        for k in range(episodes):
            policy = self.policy(episodes - k - 1)
            if policy.tobytes() != last:
                gap, last = world.plan.v[0].mean() - ucbf.evaluate(world, policy)[0].mean(), policy.tobytes()
            total, s = total + gap, int(start[k])
            for h in range(self.H):
                a = policy[h, s]
                s_next = int((world.system.f[h, s, a] + w[k, h]) % self.S)
                self.learn(h, s, a, s_next)
                s = s_next
        return float(total)


def main(worlds: int, name: str) -> None:
    """One line a kind."""
    for kind, spec in kinds_of_world().items():
        if spec[3] and name in kind:
            found = [Yardstick(*made(spec, seed), half=spec[3] // 2).regret(2000, seed) for seed in range(worlds)]
            print(f"  {kind:30}{np.mean(found):9.1f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10, sys.argv[2] if sys.argv[2:] else "")
