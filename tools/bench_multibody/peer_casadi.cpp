// Writes the generated peer: Pinocchio's own templates aba, rnea and crba run once over casadi::SX, as C by CasADi's CodeGenerator.
//
//     peer_casadi FOLDER FILE.c < bodies
//
// Standard input: number of bodies, then a row of 24 numbers a body: parent, free_base, R (9), p (3), mass, com (3), inertia (6), as
// BenchBody has them (joint z axis in its own frame).  The functions:
//     forward_local, forward_world   (q, v, tau) -> a
//     inverse                        (q, v, a) -> tau
//     mass_matrix_local, mass_matrix_world   (q) -> H, both halves, dense
// each in three forms: as it comes; `..._shared` after CasADi's cse(); `..._sines` after cse() and with two more arguments, cosine and
// sine of every turning joint (Pinocchio's unbounded joint takes them as its coordinates), so that the caller chooses how to get them.
// Standard output: a line `name operations` for each.
#include <pinocchio/autodiff/casadi.hpp>
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace pin = pinocchio;
typedef casadi::SX SX;
typedef pin::ModelTpl<SX> Model;
typedef pin::DataTpl<SX> Data;
typedef Model::ConfigVectorType Positions;
typedef Model::TangentVectorType Rates;

// joints about z whose coordinate is the angle, or (with_sines) its cosine and sine
static pin::Model read_model(std::istream &in, bool with_sines)
{
    pin::Model model;
    int n;
    in >> n;
    std::vector<pin::JointIndex> joint(n);
    for (int i = 0; i < n; ++i) {
        double x[24];
        for (double &each : x) in >> each;
        const double *R = x + 2, *p = x + 11, *c = x + 15, *I = x + 18;
        Eigen::Matrix3d rotation, inertia;
        rotation << R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8];
        inertia << I[0], I[1], I[2], I[1], I[3], I[4], I[2], I[4], I[5];
        const pin::SE3 placement(rotation, Eigen::Vector3d(p[0], p[1], p[2]));
        const pin::JointIndex parent = x[0] < 0 ? 0 : joint[(int)x[0]];
        const std::string name = "j" + std::to_string(i);
        if (x[1] != 0)
            joint[i] = model.addJoint(parent, pin::JointModelFreeFlyer(), placement, name);
        else if (with_sines)
            joint[i] = model.addJoint(parent, pin::JointModelRUBZ(), placement, name);
        else
            joint[i] = model.addJoint(parent, pin::JointModelRZ(), placement, name);
        model.appendBodyToJoint(joint[i], pin::Inertia(x[14], Eigen::Vector3d(c[0], c[1], c[2]), inertia), pin::SE3::Identity());
    }
    if (!in) throw std::runtime_error("bodies: the rows on standard input are too short");
    return model;
}

static SX column(const Rates &x)
{
    SX out(x.size(), 1);
    for (int i = 0; i < x.size(); ++i) out(i) = x[i];
    return densify(out);
}

static SX both_halves(const Data::MatrixXs &M)
{
    SX out(M.rows(), M.cols());
    for (int i = 0; i < M.rows(); ++i)
        for (int j = i; j < M.cols(); ++j) out(i, j) = out(j, i) = M(i, j);
    return densify(out);
}

int main(int argc, char **argv)
{
    if (argc != 3) throw std::runtime_error("two arguments are needed: FOLDER FILE.c");
    const std::string rows(std::istreambuf_iterator<char>(std::cin), {});
    casadi::CodeGenerator out(argv[2]);
    for (const bool with_sines : {false, true}) {
        std::istringstream in(rows);
        const Model model = read_model(in, with_sines).cast<SX>();
        const int base = model.joints[1].nq() == 7 ? 7 : 0, turning = model.nv - (base ? 6 : 0);
        const SX q = SX::sym("q", base + turning), v = SX::sym("v", model.nv), u = SX::sym("u", model.nv);
        const SX cosine = SX::sym("cosine", turning), sine = SX::sym("sine", turning);
        Positions q_(model.nq);
        Rates v_(model.nv), u_(model.nv);
        for (int k = 0; k < base; ++k) q_[k] = q(k);
        for (int j = 0; j < turning; ++j) {
            if (with_sines) {
                q_[base + 2 * j] = cosine(j);
                q_[base + 2 * j + 1] = sine(j);
            } else
                q_[base + j] = q(base + j);
        }
        pin::casadi::copy(v, v_);
        pin::casadi::copy(u, u_);
        auto add = [&](const std::string &name, bool shared, const SX &result) {
            const SX value = shared ? cse(result) : result;
            const casadi::Function function(name + (with_sines ? "_sines" : shared ? "_shared" : ""), {q, v, u, cosine, sine}, {value});
            out.add(function);
            std::cout << function.name() << " " << function.n_instructions() - function.nnz_in() - function.nnz_out() << "\n";
        };
        auto forms = [&](const std::string &name, const SX &result) {
            if (!with_sines) add(name, false, result);
            add(name, true, result);
        };
        for (const bool local : {true, false}) {
            const pin::Convention convention = local ? pin::Convention::LOCAL : pin::Convention::WORLD;
            const std::string suffix = local ? "_local" : "_world";
            Data forward(model), matrix(model);
            forms("forward" + suffix, column(pin::aba(model, forward, q_, v_, u_, convention)));
            forms("mass_matrix" + suffix, both_halves(pin::crba(model, matrix, q_, convention)));
        }
        Data inverse(model);
        forms("inverse", column(pin::rnea(model, inverse, q_, v_, u_)));
    }
    out.generate(argv[1]);
}
