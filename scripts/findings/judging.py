# SPDX-License-Identifier: MIT
"""The verdicts, and the rules they follow. Printed with every report, so that a verdict can be disputed.

A finding compares what was published with what was measured here, on another machine, another C library and later releases.
"""
SAME_SIZE_FACTOR = 1.5   # a figure within this factor of the published one has the same size
SAME_SIZE_POINTS = 0.03  # and so has a share within so many points of it, since small shares vary by large factors
BUSY_CORES = 0.5         # with more cores than that in others' hands, figures of wall time are said to be doubtful
GONE = 0.01              # a share below this is called gone

RULES = f"""\
- same size: the direction below, and the figure within a factor of {SAME_SIZE_FACTOR:g} of the published one (a share also within
  {100 * SAME_SIZE_POINTS:.0f} points); where several figures belong to a finding, all of them, unless the row says otherwise.
- same direction: the effect has the published sign in the median over rounds and in more rounds than not, or the published order; its
  size differs, and the row says by what, or nothing was published that has a size.
- not reproduced: neither, with the reason. not run: something it needs is not here, with the remedy.
- A share below {100 * GONE:.0f} % counts as gone. Rounds alternate between variants; figures are medians.
- Where contentions were published, waits are counted: a lock found taken is not waited for when a short hold is over, or spun through, before the
  thread sleeps, and a thread woken in vain waits twice. Seconds are those of the waits.
- Other programs on the machine spoil wall time. When they used more than {BUSY_CORES:g} cores meanwhile the row says so, and the six programs are
  compared by CPU time. Overlap of two threads is judged by the best of many windows of a tenth of a second, in which others disturb least."""

SIZE, DIRECTION, NOT, ABSENT = "same size", "same direction", "not reproduced", "not run"


class Outcome:
    """What came of a finding: its figure here, a verdict, the reason, and lines of detail for the report."""

    def __init__(self, here, verdict, reason="", details=()):
        self.here, self.verdict, self.reason, self.details = here, verdict, reason, list(details)


def near(here, published, share=False):
    """Whether a figure has the published size."""
    if share and abs(here - published) <= SAME_SIZE_POINTS:
        return True
    return published > 0 and here > 0 and 1 / SAME_SIZE_FACTOR <= here / published <= SAME_SIZE_FACTOR


def outcome(here, direction, size=None, why_not="", why_other_size="", details=()):
    """The verdict from the two questions. `size` None: nothing with a size was published."""
    if not direction:
        return Outcome(here, NOT, why_not, details)
    if size:
        return Outcome(here, SIZE, "", details)
    return Outcome(here, DIRECTION, why_other_size, details)


def rank_correlation(a, b):
    """Spearman's, of two dictionaries over the keys of the first. Ties share their mean rank."""
    def ranks(values):
        order = sorted(values)
        return [(order.index(v) + len(order) - 1 - order[::-1].index(v)) / 2 for v in values]
    x, y = ranks([a[key] for key in a]), ranks([b[key] for key in a])
    mean = (len(x) - 1) / 2
    over = sum((p - mean) * (q - mean) for p, q in zip(x, y))
    under = (sum((p - mean) ** 2 for p in x) * sum((q - mean) ** 2 for q in y)) ** 0.5
    return over / under if under else 0.0


def percent(share):
    return f"{100 * share:.1f} %"
