/* UCB-f in a world whose states wrap, as one would write it in C: act, learn, and the exact gap of every episode.

   The same arithmetic in the same order as ucbf.kernels, so that the gaps agree to the last bit; without what the package
   does beside it (the model check, boundaries that hide W, contexts, models of f that are learned). */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* after, reward: [S, A], the same at every step; landing, next_state: [Z]; width, cap: [H]
   average: [H, X], weight, bonus: [H], value: [H+1, S], visits: [H], policy: [H, S]: the learner, changed here
   moves: [n], pmf: [H, n], start: [S]: the world; v: [H+1, S], raw: [Z], ahead: [X]: room
   starts: [K], drawn: [K, H] how far disturbances move; gap, paid: [K], filled here */
void ucb_f(int64_t K, int64_t H, int64_t S, int64_t A, int64_t X, int64_t Z, int64_t n, int64_t learned, int64_t shift,
           double discount, double best, double floor_, const int32_t *restrict after, const double *restrict reward,
           const double *restrict landing, const int32_t *restrict next_state, const double *restrict terminal,
           const double *restrict width, const double *restrict cap, double *restrict average, double *restrict weight,
           double *restrict bonus, double *restrict value, int64_t *restrict visits, int64_t *restrict policy,
           const int64_t *restrict moves, const double *restrict pmf, const double *restrict start, double *restrict v,
           double *restrict raw, double *restrict ahead, const int64_t *restrict starts, const int64_t *restrict drawn,
           double *restrict gap, double *restrict paid, int64_t *restrict states, int64_t *restrict actions) {
    int64_t top = H - 1;
    for (int64_t k = 0; k < K; k++) {
        for (int64_t h = top; h >= 0; h--) { /* the exact values of the policy, where it changed */
            for (int64_t z = 0; z < Z; z++) raw[z] = landing[z] + discount * v[(h + 1) * S + next_state[z]];
            memset(ahead, 0, X * sizeof(double));
            for (int64_t i = 0; i < n; i++) {
                const double p = pmf[h * n + i], *from = raw + moves[i];
                if (p > 0)
                    for (int64_t x = 0; x < X; x++) ahead[x] += p * from[x];
            }
            for (int64_t s = 0; s < S; s++) {
                const int64_t pair = s * A + policy[h * S + s];
                v[h * S + s] = reward[pair] + ahead[after[pair]];
            }
        }
        double mean = 0, collected = 0, factor = 1;
        for (int64_t s = 0; s < S; s++) mean += start[s] * v[s];
        gap[k] = best - mean;
        states[0] = starts[k];
        for (int64_t h = 0; h < H; h++) { /* act */
            const int64_t s = states[h], a = policy[h * S + s], z = after[s * A + a] + drawn[k * H + h];
            actions[h] = a;
            states[h + 1] = next_state[z];
            collected += factor * (reward[s * A + a] + landing[z]);
            factor *= discount;
        }
        paid[k] = collected + factor * terminal[states[H]];
        top = -1;
        for (int64_t h = 0; h < learned; h++) { /* learn: Algorithm 1, lines 8-14, over after-states */
            const int64_t j = ((states[h + 1] + shift - after[states[h] * A + actions[h]]) % S + S) % S;
            const int64_t clock = visits[h]++ * H + h + 1;
            const double alpha = ((double)H + 1) / ((double)H + clock), kept = 1 - alpha;
            weight[h] = kept * weight[h] + alpha;
            bonus[h] = kept * bonus[h] + alpha * (width[h] / sqrt((double)clock) + floor_);
            double *g = average + h * X;
            const double *next = value + (h + 1) * S;
            for (int64_t x = 0; x < X; x++)
                g[x] = kept * g[x] + alpha * (landing[x + j] + discount * next[next_state[x + j]]);
            for (int64_t s = 0; s < S; s++) {
                double most = -INFINITY;
                int64_t which = 0;
                for (int64_t a = 0; a < A; a++) {
                    const double q = weight[h] * reward[s * A + a] + g[after[s * A + a]];
                    if (q > most) most = q, which = a;
                }
                most += bonus[h];
                value[h * S + s] = most < cap[h] ? most : cap[h];
                if (policy[h * S + s] != which) policy[h * S + s] = which, top = h;
            }
        }
    }
}
