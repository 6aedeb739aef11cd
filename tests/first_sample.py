"""What stages are stepped with in their tests: the sample before the first tick, as the line has it, and the closing of the loop."""

import numpy as np

from rt_kernels.layout import CODES, INITIAL, SAMPLE_DTYPE

MOTION = CODES["motion"]


def first_sample(**fields):
    """A sample (1,) of one period with the initial values of the table (identity poses, nothing happened yet) and these fields."""
    s = np.zeros(1, SAMPLE_DTYPE)
    for name, value in (INITIAL | {"periods": 1} | fields).items():
        s[name] = value
    return s


def closed(part, X_TA, V_TA=0.0):
    """Sample and auxiliary channels of a dynamics part that has closed its loop at this relative pose and twist: free from now."""
    s = first_sample(X_TA_measured=X_TA, V_TA_measured=V_TA, motion=MOTION["close_loop"])
    aux = part.step(s)
    s["motion"] = MOTION["free"]
    return s, aux
