"""One contact through the real line: assembly, loop and virtual stand in process. Not a simulation of its own."""

import threading

import numpy as np

from hil_server.config import load_test
from hil_server.line import assembly
from hil_server.log.record import record_dtype
from rt_kernels.layout import CODES
from tests.open_stand import opened

MASS = 300.0  # kg, reduced mass of the two bodies of programmes/elastic_contact.toml
PROGRAMME = "stand_configs/programmes/elastic_contact.toml"

# drives of hybrid-stability notes 5.5: (natural frequency, damping, delay of the drive, delay of the force sensor)
DRIVES = {
    "ideal": (0.0, 1.0, 0.0, 0.003),
    "60 Hz": (60.0, 0.7, 0.001, 0.001),
    "20 Hz": (20.0, 0.7, 0.002, 0.001),
    "spec": (13.25, 0.784, 0.002, 0.0),
    "resonant": (11.72, 0.437, 0.002, 0.0),
    "7 Hz": (7.0, 0.7, 0.003, 0.0),
}
# nothing but drive and delay: no noise, no limit, setpoints act at once
CLEAN = {
    "stand.virtual.setpoint_delay_ticks": 0,
    "stand.virtual.measured_leg_delay_ticks": 0,
    "stand.virtual.leg_noise_m": 0.0,
    "stand.virtual.leg_resolution_m": 0.0,
    "stand.virtual.force_noise_n": 0.0,
    "stand.virtual.moment_noise_n_m": 0.0,
    "stand.virtual.chain_force_n": 1e7,
    "stand.virtual.chain_moment_n_m": 1e7,
    "stand.limits.analogue_force_n": [1e7, 1e7, 1e7],
    "stand.limits.analogue_moment_n_m": [1e7, 1e7, 1e7],
    "stand.limits.force_limit_n": [1e6, 1e6, 1e6],
    "stand.limits.moment_limit_n_m": [1e6, 1e6, 1e6],
    "wrench.range_force_n": [1e6, 1e6, 1e6],
    "wrench.range_moment_n_m": [1e6, 1e6, 1e6],
    "stand.virtual.counts_per_newton": 1e5,
    "stand.platform.leg_acceleration_max_m_s2": 1e4,
    "stand.platform.leg_rate_max_m_s": 5.0,
    "safety.energy_trip": 1e5,
    "safety.energy_warn": 9.0,
    "safety.following_max_m": 0.9,
    "guidance.finish_at_region_end": False,
    "guidance.speed_max_m_s": 2.0,
    "guidance.acceleration_max_m_s2": 5.0,
    "events.contact_on_n": 0.5,
    "events.contact_off_n": 0.25,
}


def stiffness(f):
    """N/m of an undamped contact frequency f, Hz."""
    return MASS * (2.0 * np.pi * f) ** 2


def settings(f, drive="spec", compensator="none", zeta=0.0, speed=0.02, **keys):
    """Overrides of the programme for one bounce at f Hz."""
    frequency, damping, delay, sensor = DRIVES[drive]
    K = stiffness(f)
    out = CLEAN | {
        "mechanism.stiffness_n_per_m": K,
        "mechanism.damping_n_s_per_m": 2.0 * zeta * np.sqrt(K * MASS),
        "initial_conditions.velocity_x_m_s": speed,
        "stand.virtual.drive_frequency_hz": frequency,
        "stand.virtual.drive_damping": damping,
        "stand.virtual.drive_delay_s": delay,
        "stand.virtual.sensor_delay_s": sensor,
        "compensation.part": compensator,
        "guidance.contact_max_s": 0.4 + 0.75 / f + 0.15,
    }
    if compensator in ("pose_referenced_force", "lead_and_pose_force"):
        out["compensation.stiffness_n_per_m"] = K
    return out | keys


def overrides(table, programme=PROGRAMME):
    """As items of `--set`, on a stand that is as wide as they want it."""
    def text(value):
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k} = {text(v)}" for k, v in value.items()) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(text(v) for v in value) + "]"
        return value if isinstance(value, str) else repr(float(value)) if isinstance(value, float) else str(value)

    return opened([f"{key}={text(value)}" for key, value in table.items()], programme)


def run(table, programme=PROGRAMME):
    """Runs the test with these overrides. Returns (assembly, records up to the end of the closed loop)."""
    test = assembly.simulation(load_test(programme, overrides(table, programme)))
    dtype = record_dtype(sum(c.count for c in test.aux))
    test.block.heartbeat()
    thread = threading.Thread(target=test.line.run)
    thread.start()
    chunks = []
    while thread.is_alive() or test.block.head > test.block.tail:
        raw = test.block.drain()
        if not raw:
            thread.join(0.0005)
            continue
        chunks.append(np.frombuffer(raw, dtype))
        if chunks[-1]["phase"][-1] >= CODES["phase"]["finish"]:
            test.block.request_stop()
    thread.join()
    return test, np.concatenate(chunks)


def closed_loop(records):
    """The samples in which the model moves freely under the measured wrench."""
    return records[records["motion"] == CODES["motion"]["free"]]


def rebound_of(records):
    """Ratio of the relative velocities along X after and before the contact."""
    r = closed_loop(records)
    v = r["V_TA"][:, 0]
    return -v[-1] / v[0]
