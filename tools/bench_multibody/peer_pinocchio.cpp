// The peer: Pinocchio, header-only, from its wheel's headers.  Same models, same states, fastest joint types (revolute z, free-flyer).
#include <pinocchio/multibody.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <memory>
#include <string>
#include <vector>
#include "bench_case.h"

namespace pin = pinocchio;
typedef Eigen::VectorXd Vector;
typedef Eigen::Map<const Eigen::VectorXd> View;

struct Peer {
    pin::Model model;
    std::unique_ptr<pin::Data> data;
    std::vector<Vector> q, v, tau, a;
    unsigned at = 0;
};

extern "C" {
const char *peer_version() { return PINOCCHIO_VERSION ", " __VERSION__; }

void *peer_context(int n, const BenchBody *bodies, const double *q, const double *v, const double *tau, const double *a)
{
    Peer *peer = new Peer;
    std::vector<pin::JointIndex> joint(n);
    for (int i = 0; i < n; ++i) {
        const BenchBody &b = bodies[i];
        Eigen::Matrix3d R, inertia;
        R << b.R[0], b.R[1], b.R[2], b.R[3], b.R[4], b.R[5], b.R[6], b.R[7], b.R[8];
        inertia << b.inertia[0], b.inertia[1], b.inertia[2], b.inertia[1], b.inertia[3], b.inertia[4], b.inertia[2], b.inertia[4], b.inertia[5];
        const pin::SE3 placement(R, Eigen::Vector3d(b.p[0], b.p[1], b.p[2]));
        const pin::JointIndex parent = b.parent < 0 ? 0 : joint[b.parent];
        const std::string name = "j" + std::to_string(i);
        joint[i] = b.free_base ? peer->model.addJoint(parent, pin::JointModelFreeFlyer(), placement, name)
                               : peer->model.addJoint(parent, pin::JointModelRZ(), placement, name);
        peer->model.appendBodyToJoint(joint[i], pin::Inertia(b.mass, Eigen::Vector3d(b.com[0], b.com[1], b.com[2]), inertia), pin::SE3::Identity());
    }
    peer->data.reset(new pin::Data(peer->model));
    for (int s = 0; s < BENCH_STATES; ++s) {
        peer->q.push_back(View(q + s * peer->model.nq, peer->model.nq));
        peer->v.push_back(View(v + s * peer->model.nv, peer->model.nv));
        peer->tau.push_back(View(tau + s * peer->model.nv, peer->model.nv));
        peer->a.push_back(View(a + s * peer->model.nv, peer->model.nv));
    }
    return peer;
}

#define EACH(body)                                               \
    {                                                            \
        Peer &x = *static_cast<Peer *>(context);                 \
        for (int i = 0; i < repetitions; ++i) {                  \
            const unsigned s = x.at++ & (BENCH_STATES - 1);      \
            body;                                                \
        }                                                        \
    }
void peer_forward_local(void *context, int repetitions) EACH(pin::aba(x.model, *x.data, x.q[s], x.v[s], x.tau[s], pin::Convention::LOCAL))
void peer_forward_world(void *context, int repetitions) EACH(pin::aba(x.model, *x.data, x.q[s], x.v[s], x.tau[s], pin::Convention::WORLD))
void peer_inverse(void *context, int repetitions) EACH(pin::rnea(x.model, *x.data, x.q[s], x.v[s], x.a[s]))
void peer_mass_matrix_local(void *context, int repetitions) EACH(pin::crba(x.model, *x.data, x.q[s], pin::Convention::LOCAL))
void peer_mass_matrix_world(void *context, int repetitions) EACH(pin::crba(x.model, *x.data, x.q[s], pin::Convention::WORLD))

// one answer, to check before timing
void peer_answer(void *context, int what, int s, double *out)
{
    Peer &x = *static_cast<Peer *>(context);
    const int nv = x.model.nv;
    if (what == 0) Eigen::Map<Vector>(out, nv) = pin::aba(x.model, *x.data, x.q[s], x.v[s], x.tau[s]);
    if (what == 1) Eigen::Map<Vector>(out, nv) = pin::rnea(x.model, *x.data, x.q[s], x.v[s], x.a[s]);
    if (what == 2) {
        Eigen::MatrixXd H = pin::crba(x.model, *x.data, x.q[s]);
        H.triangularView<Eigen::StrictlyLower>() = H.transpose().triangularView<Eigen::StrictlyLower>();
        Eigen::Map<Eigen::MatrixXd>(out, nv, nv) = H;
    }
}
}
