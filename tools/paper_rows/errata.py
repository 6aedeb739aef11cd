"""Errata of the four papers that change numbers when a formula is taken as printed, and the test that holds the corrected form."""

from tools.paper_rows.page import Block, Context, prose

TREE, KANE, MOTION = "tests/multibody/test_tree_errata.py", "tests/offline/test_kane.py", "tests/offline/test_flexible_motion.py"

# number, place, printed, correct, file and function of the test
ERRATA = {
    "000": (
        ("E0.4", "(46)", "index k + 1 in the joint's inertia", "index k", TREE, "test_spatial_operator_recursion"),
        ("E0.7", "(83), (85)", "shift Φ of λ(k), k", "transpose of Φ of k, λ(k): a force", TREE, "test_spatial_operator_recursion"),
        ("E0.10", "(91)", "z += Φᵀ (P H β' + z)", "P a as well, as in (52)", TREE, "test_spatial_operator_recursion"),
        ("E0.11", "(93)", "ε = D⁻¹ z", "ν = D⁻¹ ε with ε = T - Hᵀ z of (88)", TREE, "test_spatial_operator_recursion"),
        ("E0.12", "(27), (75)", "a_k left to a reference", "ω × δω; ω × (ω × l) + 2 ω × δv", TREE, "test_spatial_operator_recursion"),
    ),
    "002": (
        ("E2.1", "table 1, II", "q3' sin q3, q3' cos q3", "q2' sin q3, q2' cos q3", KANE, "test_erratum_of_the_speeds"),
        ("E2.4", "(10)", "F_r = -∂W/∂q_r", "only for u_r = q_r'", KANE, "test_erratum_potential_of_general_speeds"),
        ("E2.5", "(25), (29), (33)", "u3 [2 u2 + D u3] of the particle", "u3 [u2 + D u3]", KANE, "test_errata_of_the_example"),
        ("E2.6", "(29), (33) line 2", "- 2 u3 u1", "+ 2 u3 u1", KANE, "test_errata_of_the_example"),
        ("E2.7", "(33) line 4", "u1", "u1'", KANE, "test_errata_of_the_example"),
        ("E2.8", "(34) lines 3, 4", "q2''; q1' cos q3 + q2' sin q3", "q2'' cos q3; second derivatives", KANE,
         "test_erratum_of_the_second_set"),
        ("E2.9", "(18), (19)", "∂K/∂q_r' ...; = -∂W/∂q_r", "∂K/∂q_r ...; = +∂W/∂q_r", KANE, "test_erratum_of_the_lagrange_form"),
    ),
    "003": (
        ("E3.1", "(5)", "+ ρ̃ in the velocity", "- ρ̃, as in (12)", MOTION, "test_erratum_sign_of_the_rotation_in_the_velocity"),
        ("E3.5", "(16)", "ω̃₃ ω̃₃ ρ₂", "ω̃₃ ω̃₃ ρ₃₀", MOTION, "test_erratum_arm_of_the_reactor"),
        ("E3.6", "(18)", "third unknown ω₂'", "a₂''", MOTION, "test_erratum_third_unknown_is_modal"),
        ("E3.10", "table 2", "5.0e-8 Pa", "1.008e9 Pa, from table 3", MOTION, "test_erratum_youngs_modulus"),
        ("E3.11", "table 5", "1.053 Hz; no axial mode", "0.990 Hz; axial 1.035 Hz", MOTION, "test_erratum_torsion_of_the_point_model"),
        ("E3.12", "2.2", "about 2 %", "1.8, 6.5, 8.9 %", MOTION, "test_erratum_error_of_the_point_model"),
        ("E3.13", "method", "eleven free-free modes", "4 to 38 % too stiff between heavy bodies", MOTION,
         "test_mass_loaded_modes_give_the_finite_elements"),
        ("E3.14", "2.1", "amplitudes alone", "profile, damping and start decide the peak", MOTION,
         "test_erratum_torque_profile_decides_the_peak"),
    ),
    "004": (
        ("E4.2", "(5) to (7)", "the whole hinge locked with an active joint", "its modes are released", MOTION,
         "test_errata_of_the_recursion"),
        ("E4.3", "(6), active", "z+ = z", "z+ = z + P H q''", MOTION, "test_errata_of_the_recursion"),
        ("E4.4", "(6), passive", "z+ = z + G ν", "z+ = z + G l", MOTION, "test_errata_of_the_recursion"),
        ("E4.5", "(7), active", "f = P α+ + z", "f = P (α+ + H q'') + z", MOTION, "test_errata_of_the_recursion"),
        ("E4.7", "(8), (10)", "active and passive exchanged", "the other way round", MOTION,
         "test_erratum_active_and_passive_interchanged"),
        ("E4.12", "4.2", "5 ms with 210 GPa", "at most 1.368 ms", MOTION, "test_erratum_step_of_5_ms_with_a_steel_bar"),
    ),
}


def block(paper: str) -> Block:
    """The paper's list of errata."""

    def make(context: Context) -> list[str]:
        files = ", ".join(f"`{file}`" for file in dict.fromkeys(file for *_, file, _ in ERRATA[paper]))
        rows = [f"* {number}, {place}: {printed} → {correct}" for number, place, printed, correct, *_ in ERRATA[paper]]
        return [*prose(f"**Errata**, printed → correct ({files}):"), "", *rows, ""]

    return Block(f"{paper}.errata", make)
