"""Prediction on the identified machine of a hydraulic stand against the run on the true one. (200 cases: tools/predict_random.py.)"""

import math

import numpy as np
import pytest

from hil_server.judge.margins import Margin
from hil_server.predict.contact_line import Played, together
from tools.predict_random import BAND, run_case

# recommended part, a lead, one whose units turn after the contact, one met almost across X, and a case that trips; drawn by the tool
CASES = {"rebounds": (8, 14, 100, 157), "trips": (0,)}


@pytest.mark.parametrize("number", CASES["rebounds"])
def test_rebound_on_the_true_stand_is_that_foreseen_on_the_identified_one(number):
    row = run_case(number)
    assert row["e"] is not None and abs(row["e"] - row["predicted"]) <= BAND, row


@pytest.mark.parametrize("number", CASES["trips"])
def test_run_that_trips_was_not_called_good(number):
    row = run_case(number)
    assert row["e"] is None and "trips" in row["why"] and not row["within"] and "would reach a limit" in row["verdict"], row


def test_contacts_under_different_noise_are_taken_together():
    near, far = Margin("leg force", 2.0, 1.0, "N", 2.0, True), Margin("leg force", 0.5, 1.0, "N", 0.5, True)
    plays = [Played(1.0, "", None, 5.0, (far,)), Played(1.1, "", None, 6.0, (near,))]
    both = together(plays)
    assert both.restitution == pytest.approx(1.05) and both.sigma == pytest.approx(np.std([1.0, 1.1], ddof=1)) and both.margins == (near,)
    refused = together([*plays, Played(math.nan, "the contact does not end", None, 1.0)])
    assert refused.refused == "the contact does not end" and math.isnan(refused.restitution)
