/* Peer of the hydraulic machine's step (tools/bench_hydraulic.py): the same legs, platform, drives and supply straight from the equations,
 * row by row, with a smooth sign for the friction, the exponential of Stribeck's curve, no line, no ledger beyond sums, no faults. SI units.
 * gcc -O3 -march=native: all that the machine at hand has. */
#include <math.h>
#include <string.h>
#include <time.h>

typedef struct {
    double Aa, Ab, L, Va0, Vb0, beta, Ci, Ce;            /* cylinder: areas, stroke, dead volumes, bulk modulus, leakages */
    double lmin;                                         /* leg length at rod position 0 */
    double K, ptr, wv, zv, slew, overlap;                /* valve */
    double sigma, Fc, Fs, vs, vr;                        /* friction */
    double cush, kc, dc;                                 /* end cushion: length, stiffness, damping per length */
    double kv, kf, kp, whp, Kx;                          /* drive: position gain, velocity share, pressure gain, high-pass, valve speed gain */
    double ps0, pt, Vg0, kappa, pump_max, pump_gain;     /* supply: Vg0 gas volume at ps0; 0: stiff supply */
    double m, com[3], I[9], g[3];                        /* platform and unit: mass, centre, inertia about it (in P) */
    double m1, J1, a1, m2, a2, J2;                       /* cylinder: mass, inertia about its joint, centre; rod: mass, centre below joint, own inertia */
    double base[18], plat[18];
    double p0[3];
} P;

typedef struct {
    double pos[3], q[4], v[3], w[3];                     /* P in W: position, quaternion xyzw, velocity, angular velocity (W) */
    double pa[6], pb[6], x[6], xd[6], hp[6];             /* pressures, spool, spool rate, high-pass state */
    double ps;                                           /* supply */
    double y[6], yd[6];                                  /* rod position and speed */
    double E[8];                                         /* ledger: supply, throttling, leakage, friction, work on load, clipped, cushion, tank */
    double Fh[6];
} S;

static void rot(const double *q, double *R) {
    double x = q[0], y = q[1], z = q[2], w = q[3];
    R[0] = 1-2*(y*y+z*z); R[1] = 2*(x*y-z*w); R[2] = 2*(x*z+y*w);
    R[3] = 2*(x*y+z*w); R[4] = 1-2*(x*x+z*z); R[5] = 2*(y*z-x*w);
    R[6] = 2*(x*z-y*w); R[7] = 2*(y*z+x*w); R[8] = 1-2*(x*x+y*y);
}
static void mv(const double *R, const double *a, double *b) { for (int i = 0; i < 3; i++) b[i] = R[3*i]*a[0]+R[3*i+1]*a[1]+R[3*i+2]*a[2]; }
static void cr(const double *a, const double *b, double *c) { c[0]=a[1]*b[2]-a[2]*b[1]; c[1]=a[2]*b[0]-a[0]*b[2]; c[2]=a[0]*b[1]-a[1]*b[0]; }

/* leg lengths, unit vectors, arms */
static void legs(const P *p, const double *pos, const double *R, double *l, double n[6][3], double r[6][3]) {
    for (int i = 0; i < 6; i++) {
        mv(R, p->plat+3*i, r[i]);
        double d[3], s = 0;
        for (int k = 0; k < 3; k++) { d[k] = pos[k]+r[i][k]-p->base[3*i+k]; s += d[k]*d[k]; }
        l[i] = sqrt(s);
        for (int k = 0; k < 3; k++) n[i][k] = d[k]/l[i];
    }
}
static void jac(double n[6][3], double r[6][3], double J[6][6]) {
    for (int i = 0; i < 6; i++) { cr(r[i], n[i], &J[i][3]); J[i][0]=n[i][0]; J[i][1]=n[i][1]; J[i][2]=n[i][2]; }
}
/* sqrt with a laminar middle, and its slope */
static inline double root(double d, double t, double *slope) {
    double h = d*d+t*t, s = 1.0/sqrt(sqrt(h));
    *slope = s - 0.5*d*d*s/h;
    return d*s;
}
/* mass matrix of platform and legs, bias force (gravity, gyroscopic) */
static void mass(const P *p, const S *s, const double *R, const double *l, double n[6][3], double r[6][3], double M[6][6], double *h) {
    double c[3], t[3], u[3], I[9], T[9];
    mv(R, p->com, c);
    for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) { T[3*i+j]=0; for (int k=0;k<3;k++) T[3*i+j]+=R[3*i+k]*p->I[3*k+j]; }
    for (int i = 0; i < 3; i++) for (int j = 0; j < 3; j++) { I[3*i+j]=0; for (int k=0;k<3;k++) I[3*i+j]+=T[3*i+k]*R[3*j+k]; }
    memset(M, 0, 36*sizeof(double));
    double C[9] = {0,-c[2],c[1], c[2],0,-c[0], -c[1],c[0],0}, m = p->m, cc = c[0]*c[0]+c[1]*c[1]+c[2]*c[2];
    for (int i = 0; i < 3; i++) { M[i][i] = m; for (int j = 0; j < 3; j++) { M[3+i][j]=m*C[3*i+j]; M[i][3+j]=-m*C[3*i+j]; M[3+i][3+j]=I[3*i+j]+m*((i==j)*cc-c[i]*c[j]); } }
    double f[3];
    cr(s->w, c, t); cr(s->w, t, u);
    for (int i = 0; i < 3; i++) f[i] = m*(p->g[i]-u[i]);
    cr(c, f, t);
    mv(I, s->w, u); cr(s->w, u, C);
    for (int i = 0; i < 3; i++) { h[i] = f[i]; h[3+i] = t[i]-C[i]; }
    if (p->m1 + p->m2 == 0.0) return;
    for (int i = 0; i < 6; i++) {
        /* rod along n; across n: cylinder and rod swing about the base joint */
        double lc = l[i]-p->a2, A = (p->J1+p->J2+p->m2*lc*lc)/(l[i]*l[i]), G[3], gn = 0;
        double W = (p->m1*p->a1+p->m2*lc)/l[i], B[3][3];
        for (int k = 0; k < 3; k++) gn += p->g[k]*n[i][k];
        for (int k = 0; k < 3; k++) G[k] = W*(p->g[k]-gn*n[i][k]) + p->m2*gn*n[i][k];
        cr(r[i], G, t);
        for (int k = 0; k < 3; k++) { h[k] += G[k]; h[3+k] += t[k]; }
        for (int k = 0; k < 3; k++) for (int j = 0; j < 3; j++) B[k][j] = A*((k==j)-n[i][k]*n[i][j]) + p->m2*n[i][k]*n[i][j];
        double X[3][6];                                   /* B [1, -r x] */
        double rx[9] = {0,-r[i][2],r[i][1], r[i][2],0,-r[i][0], -r[i][1],r[i][0],0};
        for (int k = 0; k < 3; k++) for (int j = 0; j < 3; j++) {
            X[k][j] = B[k][j]; double z = 0; for (int a = 0; a < 3; a++) z -= B[k][a]*rx[3*a+j]; X[k][3+j] = z; }
        for (int k = 0; k < 3; k++) for (int j = 0; j < 6; j++) {
            M[k][j] += X[k][j]; double z = 0; for (int a = 0; a < 3; a++) z += rx[3*k+a]*X[a][j]; M[3+k][j] += z; }
    }
}
static void solve6(double M[6][6], double *b) {
    for (int j = 0; j < 6; j++) {
        double d = M[j][j]; for (int k = 0; k < j; k++) d -= M[j][k]*M[j][k];
        M[j][j] = d = 1.0/sqrt(d);
        for (int i = j+1; i < 6; i++) { double z = M[i][j]; for (int k = 0; k < j; k++) z -= M[i][k]*M[j][k]; M[i][j] = z*d; }
    }
    for (int i = 0; i < 6; i++) { double z = b[i]; for (int k = 0; k < i; k++) z -= M[i][k]*b[k]; b[i] = z*M[i][i]; }
    for (int i = 5; i >= 0; i--) { double z = b[i]; for (int k = i+1; k < 6; k++) z -= M[k][i]*b[k]; b[i] = z*M[i][i]; }
}
/* at rest in the pose of s: legs carry the weight, spools closed, pressures about half the supply */
void hs_rest(const P *p, S *s) {
    double R[9], n[6][3], r[6][3], l[6], J[6][6], M[6][6], h[6], B[6][7];
    memset(s->v, 0, sizeof(double)*6);
    rot(s->q, R); legs(p, s->pos, R, l, n, r); jac(n, r, J); mass(p, s, R, l, n, r, M, h);
    for (int i = 0; i < 6; i++) { for (int j = 0; j < 6; j++) B[i][j] = J[j][i]; B[i][6] = -h[i]; }
    for (int c = 0; c < 6; c++) {                          /* Gauss with pivot */
        int b = c; for (int i = c+1; i < 6; i++) if (fabs(B[i][c]) > fabs(B[b][c])) b = i;
        for (int k = 0; k < 7; k++) { double z = B[c][k]; B[c][k] = B[b][k]; B[b][k] = z; }
        for (int i = 0; i < 6; i++) if (i != c) { double z = B[i][c]/B[c][c]; for (int k = c; k < 7; k++) B[i][k] -= z*B[c][k]; }
    }
    memset(s->E, 0, sizeof s->E);
    s->ps = p->ps0;
    for (int i = 0; i < 6; i++) {
        double F = B[i][6]/B[i][i], pm = 0.5*(p->ps0+p->pt);
        s->pa[i] = pm+0.5*F/p->Aa; s->pb[i] = (p->Aa*s->pa[i]-F)/p->Ab;
        s->x[i] = s->xd[i] = 0; s->hp[i] = F/p->Aa; s->y[i] = l[i]-p->lmin; s->yd[i] = 0;
    }
}
static inline double clip(double x, double m) { return x < -m ? -m : x > m ? m : x; }

/* u, ud: set points of rod position and speed; w: wrench on the platform at P in W */
static void hs_step(const P *p, S *s, const double *u, const double *ud, const double *w, double dt) {
    double R[9], n[6][3], r[6][3], l[6], J[6][6], M[6][6], b[6], D[6], Fr[6], used = 0;
    rot(s->q, R); legs(p, s->pos, R, l, n, r); jac(n, r, J); mass(p, s, R, l, n, r, M, b);
    for (int i = 0; i < 6; i++) b[i] += w[i];
    for (int i = 0; i < 6; i++) {
        double y = l[i]-p->lmin, v = s->yd[i], pl = s->pa[i]-s->pb[i]*p->Ab/p->Aa;
        s->hp[i] += dt*p->whp*(pl-s->hp[i]);
        double uv = (p->kf*ud[i]+p->kv*(u[i]-y))/p->Kx - p->kp*(pl-s->hp[i]);
        uv = clip(uv, 1.0);
        s->xd[i] = clip((s->xd[i]+dt*p->wv*p->wv*(uv-s->x[i]))/(1+2*p->zv*p->wv*dt), p->slew);
        s->x[i] += dt*s->xd[i];
        if (fabs(s->x[i]) > 1) { s->x[i] = clip(s->x[i], 1); s->xd[i] = 0; }
        double e = p->Fc+(p->Fs-p->Fc)*exp(-(v/p->vs)*(v/p->vs)), t = tanh(v/p->vr), slope = p->sigma+e*(1-t*t)/p->vr, Fc = 0;
        double pen = y < p->cush ? p->cush-y : y > p->L-p->cush ? p->L-p->cush-y : 0;
        if (pen != 0) { Fc = p->kc*pen*fabs(pen) - p->dc*fabs(pen)*v; slope += p->dc*fabs(pen)+2*dt*p->kc*fabs(pen); }
        Fr[i] = p->sigma*v+e*t - Fc;
        s->Fh[i] = p->Aa*s->pa[i]-p->Ab*s->pb[i];
        D[i] = dt*slope;
        double F = s->Fh[i]-Fr[i];
        for (int k = 0; k < 6; k++) b[k] += J[i][k]*F;
    }
    for (int i = 0; i < 6; i++) for (int j = 0; j <= i; j++) { double z = 0; for (int k = 0; k < 6; k++) z += J[k][i]*D[k]*J[k][j]; M[i][j] += z; }
    solve6(M, b);
    for (int k = 0; k < 3; k++) { s->v[k] += dt*b[k]; s->w[k] += dt*b[3+k]; s->pos[k] += dt*s->v[k]; }
    double hx=.5*dt*s->w[0], hy=.5*dt*s->w[1], hz=.5*dt*s->w[2], *q=s->q, a=q[0], c=q[1], d=q[2], f=q[3];
    q[0]+=hx*f+hy*d-hz*c; q[1]+=hy*f+hz*a-hx*d; q[2]+=hz*f+hx*c-hy*a; q[3]-=hx*a+hy*c+hz*d;
    double nn = 1.5-0.5*(q[0]*q[0]+q[1]*q[1]+q[2]*q[2]+q[3]*q[3]); for (int k=0;k<4;k++) q[k]*=nn;
    for (int i = 0; i < 6; i++) {
        double vn = 0, vo = s->yd[i], y = l[i]-p->lmin, Da, Db, sa, sb, xe, k, Qa, Qb;
        for (int j = 0; j < 3; j++) vn += J[i][j]*s->v[j]+J[i][3+j]*s->w[j];
        xe = s->x[i] > p->overlap ? s->x[i]-p->overlap : s->x[i] < -p->overlap ? s->x[i]+p->overlap : 0;
        k = p->K*fabs(xe);
        if (xe >= 0) { Da = s->ps-s->pa[i]; Db = s->pb[i]-p->pt; Qa = k*root(Da,p->ptr,&sa); Qb = k*root(Db,p->ptr,&sb); }
        else { Da = s->pa[i]-p->pt; Db = s->ps-s->pb[i]; Qa = -k*root(Da,p->ptr,&sa); Qb = -k*root(Db,p->ptr,&sb); }
        double ca = dt*p->beta/(p->Va0+p->Aa*y), cb = dt*p->beta/(p->Vb0+p->Ab*(p->L-y));
        double li = p->Ci*(s->pa[i]-s->pb[i]), pa = s->pa[i], pb = s->pb[i];
        double dpa = ca*(Qa-p->Aa*vn-li-p->Ce*(pa-p->pt))/(1+ca*(k*sa+p->Ci+p->Ce));
        double dpb = cb*(p->Ab*vn-Qb+li-p->Ce*(pb-p->pt))/(1+cb*(k*sb+p->Ci+p->Ce));
        s->pa[i] += dpa; s->pb[i] += dpb;
        Qa -= k*sa*dpa; Qb += k*sb*dpb;
        if (s->pa[i] < 0) { s->pa[i] = 0; s->E[5] += 1; }   /* cavitation: clipped and counted */
        if (s->pb[i] < 0) { s->pb[i] = 0; s->E[5] += 1; }
        used += xe >= 0 ? Qa : -Qb;
        double Qs = xe >= 0 ? Qa : -Qb, Qt = xe >= 0 ? Qb : -Qa;
        s->E[0] += dt*(Qs*s->ps - Qt*p->pt);
        s->E[1] += dt*(xe >= 0 ? Qa*(s->ps-pa)+Qb*(pb-p->pt) : -Qa*(pa-p->pt)-Qb*(s->ps-pb));
        s->E[2] += dt*(li*(pa-pb)+p->Ce*((pa-p->pt)*pa+(pb-p->pt)*pb));
        s->E[3] += dt*(Fr[i]*vn + D[i]/dt*(vn-vo)*vn);
        s->E[4] += dt*s->Fh[i]*vn;
        s->yd[i] = vn; s->y[i] = y+dt*vn;
    }
    if (p->Vg0 > 0) {
        double pump = p->pump_gain*(p->ps0-s->ps); pump = pump < 0 ? 0 : pump > p->pump_max ? p->pump_max : pump;
        double vg = p->Vg0*pow(p->ps0/s->ps, 1/p->kappa);
        s->ps += dt*p->kappa*s->ps/vg*(pump-used);
    }
}
/* ns of processor time a step, with the set points u of the rods held */
double hs_time(const P *p, S *s, const double *u, long steps, double dt) {
    double w[6] = {0}, ud[6] = {0}; struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (long i = 0; i < steps; i++) hs_step(p, s, u, ud, w, dt);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    return ((b.tv_sec-a.tv_sec)*1e9+(b.tv_nsec-a.tv_nsec))/steps;
}
