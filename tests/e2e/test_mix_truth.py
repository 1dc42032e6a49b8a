#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The printed intervals hold the truth: rowload mix knows its shares, rowprof prints them with an interval.

Twenty short runs with different seeds. If each interval held with 95 %, fewer than 14 of 20 for one category would happen
less than once in 10,000 (binomial). The mean squared standardized error is near one when the intervals are as wide as they
should be. Samples are taken 4 ms apart, some ten pieces of work: at 1 ms they would hit a third of all pieces, and a third of a
whole is known better than that many independent draws (0.39 was seen so). The counts are printed, so that a drift shows before it fails.
"""
import harness

RUNS = 20
HOLD_AT_LEAST = 14
RULES = """categories:
  - {id: mix.a, name: "mix a", kind: cost}
  - {id: mix.b, name: "mix b", kind: cost}
  - {id: mix.c, name: "mix c", kind: cost}
rules:
  - {id: mix-a, category: mix.a, symbol: "rw_mix_*a"}
  - {id: mix-b, category: mix.b, symbol: "rw_mix_*b"}
  - {id: mix-c, category: mix.c, symbol: "rw_mix_*c"}
"""


class MixTruth(harness.Case):
    def profiles(self, targets, rules, seconds=1.5):
        """Each target with its profile, all taken at once."""
        processes = [harness.rowprof_start("--pid", target.pid, "--rules", rules, "-F", 251, "--seconds", seconds, "--no-kernel", "--format", "json")
                     for target in targets]
        for target, process in zip(targets, processes):
            run = harness.rowprof_wait(process)
            self.assertEqual(run.status, 0, run.stderr)
            profile = harness.Profile(run)
            if profile.samples < 150 and seconds < 15:  # a busy machine gave it no CPU: no interval is promised on a handful
                (_, profile), = self.profiles([target], rules, seconds * 3)
            yield target, profile

    @harness.needs(harness.rowprof_there, harness.perf_events)
    def test_intervals_hold_the_true_shares(self):
        rules = self.scratch + "/mix.yaml"
        with open(rules, "w", encoding="ascii") as file:
            file.write(RULES)
        held = dict.fromkeys("abc", 0)
        squares = []
        for seed in range(0, RUNS, 2):  # two at a time: samples are of CPU time, whoever else has some
            for target, profile in self.profiles([self.start_rowload("mix", "--seed", seed + i, "--depth", 5, "--idle", "futex", "--idle-threads", 2,
                                                                     "--fp", i) for i in range(2)], rules):
                target.stop()
                truth = target.words("TRUTH")
                for letter in "abc":
                    row = profile.categories[f"mix {letter}"]
                    self.assertLess(row["low"], row["high"])
                    held[letter] += row["low"] <= truth[letter] <= row["high"]
                    error = (row["share"] - truth[letter]) / ((row["high"] - row["low"]) / (2 * 1.96))
                    squares.append(error * error)
        mean = sum(squares) / len(squares)
        print(f"held {held} of {RUNS}, mean squared standardized error {mean:.2f}")
        for letter, count in held.items():
            self.assertGreaterEqual(count, HOLD_AT_LEAST, letter)
        self.assertGreaterEqual(mean, 0.3)
        self.assertLessEqual(mean, 2.0)


if __name__ == "__main__":
    harness.main()
