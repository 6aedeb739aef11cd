"""The virtual stand over the wires with each force sensor on its own: the wrench that the port reads is the plant's, the log replays."""

import numpy as np
import pytest

from hil_server import registry
from hil_server.cli import main
from hil_server.config import load_test
from hil_server.config.model import Stand
from hil_server.errors import ConfigurationError
from hil_server.line.run_header import configuration
from hil_server.log.reader import read_log
from hil_server.run.replay import replay
from hil_server.run.session import Options, run_live
from rt_kernels.layout import BITS
from tests.open_stand import opened
from tools.live_fault_matrix import QUICK, SENSORS

# step of what the wire carries, N; a sensor that is read at 100 Hz is older than one at 1 kHz
STEP_N = {"rdt": 1e-4, "bota_serial": 1e-3, "robotiq_ft300": 0.01, "ati_can": 1.0}
MASS_KG = {"robotiq_ft300": 10.0}
NOISE_N = 0.5
LATE_TICKS = 8  # after a lost request its answer may still come, drivers/wrench_sensors/ati_can.pyx


@pytest.mark.alone
@pytest.mark.parametrize("part", ("bota_serial", "ati_can"))  # the others: tools/live_fault_matrix.py --sensor
def test_a_run_with_a_sensor_on_its_own_wire(part, tmp_path):
    """0.8 s of free approach: the sensor reads the weight of the unit it carries."""
    settings = [*QUICK, "test.duration_max_s=0.8", f"stand.wrench_sensor.part={part}", *SENSORS[part]]
    config = load_test(None, opened(settings))
    summary = run_live(config, Options(out=str(tmp_path / "run"), quiet=True, report=False, force=True))
    log = read_log(summary["log"])
    records, scale = log.records, log.header.calibration["context"]["sensor_scale"]
    damaged = sum(BITS["sensor_status"][name] for name in ("corrupt", "saturated", "out_of_range", "device_fault", "stale"))
    # a record that was cut while its line was not read yet ends in the first ticks; on a busy machine the answer to a request that was
    # given up comes late, as a half without its other one (`ati_can`)
    lost = (records["wrench_status"] & BITS["sensor_status"]["lost"]) != 0
    late = np.convolve(lost, np.ones(LATE_TICKS))[: len(lost)] > 0
    seen = (records["wrench_status"] & np.where(late, damaged - BITS["sensor_status"]["corrupt"], damaged).astype(np.uint32))[10:]
    assert not [name for name, bit in BITS["sensor_status"].items() if (seen & bit).any()] and not log.incomplete
    weight = config.stand["mounting"]["carried_mass_kg"] * 9.80665
    assert weight == pytest.approx(MASS_KG.get(part, 120.0) * 9.80665)
    forces = records["wrench_raw"][len(records) // 2 :] / np.array(scale)
    assert abs(np.abs(forces[:, 0]).mean() - weight) < 3 * NOISE_N + STEP_N[part]
    assert np.abs(forces[:, 1:3]).max() < 8 * NOISE_N + STEP_N[part]
    # the zero of the live cell is taken off before the approach, by a key that the log has
    assert configuration(log).part("wrench")[1]["tare_s"] == 1.0
    assert np.diff(records["wrench_sequence"]).max() >= 1 and replay(summary["log"], verify=True)["equal"]


def test_the_stand_file_chooses_the_emulator():
    assert Stand({"wrench_sensor": {"part": "rdt", "address": "127.0.0.1"}}).played_sensor["variant"] == "net_ft"
    for part, where in registry.PARTS["emulated_sensors"].items():
        settings = [f"stand.wrench_sensor.part={part}", *SENSORS[part]]
        assert load_test(None, settings).setup.stand.played_sensor["variant"] == ("onrobot" if part == "rdt" else where)
    with pytest.raises(ConfigurationError, match=r"stand\.wrench_sensor\.part: .*'foil', limit one of rdt, "):
        _ = Stand({"wrench_sensor": {"part": "foil"}}).played_sensor


def test_a_sensor_that_the_virtual_stand_cannot_be_is_refused_by_check_already(monkeypatch, capsys):
    settings = [f"--set={item}" for item in ("stand.wrench_sensor.part=ati_can", *SENSORS["ati_can"])]
    assert main(["check", *settings]) == 0
    monkeypatch.delitem(registry.PARTS["emulated_sensors"], "ati_can")
    assert main(["check", *settings]) == 2
    assert "stand.wrench_sensor.part: the virtual stand has no sensor for 'ati_can', limit one of rdt, " in capsys.readouterr().out
