/* Products of a training step in float32: many rows with weights that lie in panels, and gradients of weights.

   Rows go through all panels a few at a time, so that they stay near; every number is one sum in ascending order, or, of
   gradients, one for each DEPTH tokens, and these are added in order: it does not depend on the number of threads. */

#include "vectors.h"
#include "products.h"

enum { ROWS = 64, DEPTH = 256 }; /* that go together; tokens that one sum spans */

/* to [rows, columns] = from [rows, depth] times the weights, and bias, which may be NULL */
void linear(int64_t rows, int64_t depth, int64_t columns, const float *from, const float *panels, const float *bias,
            float *to, int threads) {
    Linear weights = {panels, bias};
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows > ROWS)
    for (int64_t i = 0; i < rows; i += ROWS)
        multiply(rows - i < ROWS ? rows - i : ROWS, depth, columns, from + i * depth, weights, 0, to + i * columns);
}

/* TALL columns of [depth, width] side by side, zero after the first `count` */
static void gather(int64_t depth, int64_t width, const float *from, int64_t count, float *restrict strip) {
    for (int64_t k = 0; k < depth; k++)
        for (int64_t i = 0; i < TALL; i++) strip[k * TALL + i] = i < count ? from[k * width + i] : 0;
}

/* to [outer, inner] = d_output [tokens, outer]' state [tokens, inner]; scratch [DEPTH, inner up to a multiple of PANEL] */
void linear_gradient(int64_t tokens, int64_t outer, int64_t inner, const float *d_output, const float *state, float *to,
                     float *scratch, int threads) {
    if (!tokens) memset(to, 0, outer * inner * sizeof(float));
    for (int64_t first = 0; first < tokens; first += DEPTH) {
        int64_t depth = tokens - first < DEPTH ? tokens - first : DEPTH;
        pack(depth, inner, state + first * inner, inner, 1, scratch, threads);
#pragma omp parallel for num_threads(threads) if (threads > 1)
        for (int64_t o = 0; o < outer; o += TALL) {
            float strip[DEPTH * TALL];
            int64_t count = outer - o < TALL ? outer - o : TALL;
            if (count == TALL) gather(depth, outer, d_output + first * outer + o, TALL, strip);
            else gather(depth, outer, d_output + first * outer + o, count, strip);
            for (int64_t p = 0; p < inner; p += PANEL) {
                lanes sums[TALL][WIDE];
                tile(TALL, depth, strip, 1, TALL, scratch + p * depth, sums);
                for (int64_t i = 0; i < count; i++)
                    for (int64_t v = 0; v < WIDE; v++)
                        if (p + v * LANES < inner)
                            put(sums[i][v], 0, first > 0, to + (o + i) * inner + p + v * LANES, inner - p - v * LANES);
            }
        }
    }
}
