/* What a training step computes between its matrix products, forward and backward, in float32 on a CPU: one pass each.

   Rows are summed in a fixed order and threads never add to the same number, so that what comes out does not depend on
   how many there are. */

#include "vectors.h"

enum { ROWS = 8, BLOCK = 64 }; /* of one product; that one partial sum spans */

static float dot(const float *one, const float *other, int64_t count) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < count; i++) total += one[i] * other[i];
    return total;
}

/* state = residual + delta (neither is written without delta); normed = weight * state * scale, scale [rows] */
void norm_forward(int64_t rows, int64_t width, const float *residual, const float *delta, const float *weight,
                  float epsilon, float *restrict state, float *restrict normed, float *restrict scale, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t t = 0; t < rows; t++) {
        const float *x = residual + t * width;
        if (delta) {
            for (int64_t i = 0; i < width; i++) state[t * width + i] = x[i] + delta[t * width + i];
            x = state + t * width;
        }
        scale[t] = 1 / sqrtf(dot(x, x, width) / width + epsilon);
        for (int64_t i = 0; i < width; i++) normed[t * width + i] = x[i] * scale[t] * weight[i];
    }
}

/* y = w n, n = x scale: dx = (w dy - n mean(w dy n)) scale + d_sum; d_weight [rows / BLOCK, width] is the sum of dy n */
void norm_backward(int64_t rows, int64_t width, const float *d_sum, const float *d_normed, const float *residual,
                   const float *delta, const float *weight, const float *scale, float *restrict d_state,
                   float *restrict normed, float *restrict d_weight, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t block = 0; block < (rows + BLOCK - 1) / BLOCK; block++) {
        float *restrict total = d_weight + block * width;
        memset(total, 0, width * sizeof(float));
        for (int64_t t = block * BLOCK; t < rows && t < (block + 1) * BLOCK; t++) {
            const float *pull = d_normed + t * width, *x = residual + t * width;
            float *restrict found = d_state + t * width, *restrict normal = normed + t * width;
#pragma omp simd
            for (int64_t i = 0; i < width; i++) {
                float n = (delta ? x[i] + delta[t * width + i] : x[i]) * scale[t];
                total[i] += pull[i] * n;
                normal[i] = n;
                found[i] = pull[i] * weight[i];
            }
            float mean = dot(found, normal, width) / width;
#pragma omp simd
            for (int64_t i = 0; i < width; i++) {
                found[i] = (found[i] - normal[i] * mean) * scale[t] + (d_sum ? d_sum[t * width + i] : 0);
                normal[i] *= weight[i];
            }
        }
    }
}

/* gate_up [rows, 2 width] -> product [rows, width] */
void swiglu_forward(int64_t rows, int64_t width, const float *gate_up, float *restrict product, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t t = 0; t < rows; t++) {
        const float *gate = gate_up + t * 2 * width, *up = gate + width;
        for (int64_t i = 0; i < width; i++) product[t * width + i] = gate[i] / (1 + exponential(-gate[i])) * up[i];
    }
}

/* with s = sigmoid(g): d silu(g) / dg = s (1 + g (1 - s)) */
void swiglu_backward(int64_t rows, int64_t width, const float *gate_up, const float *d_product,
                     float *restrict d_gate_up, float *restrict product, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t t = 0; t < rows; t++) {
        const float *gate = gate_up + t * 2 * width, *up = gate + width, *pull = d_product + t * width;
        float *restrict d_gate = d_gate_up + t * 2 * width, *restrict d_up = d_gate + width;
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float chance = 1 / (1 + exponential(-gate[i])), opened = gate[i] * chance;
            product[t * width + i] = opened * up[i];
            d_up[i] = pull[i] * opened;
            d_gate[i] = pull[i] * up[i] * (chance + opened * (1 - chance));
        }
    }
}

/* Turn the first `turned` of `heads` heads [rows, heads, size] in place; cosine, sine [rows, size / 2] */
void rotate(int64_t rows, int64_t heads, int64_t turned, int64_t size, float *restrict fused, const float *cosine,
            const float *sine, float sign, int threads) {
    int64_t half = size / 2;
#pragma omp parallel for num_threads(threads)
    for (int64_t t = 0; t < rows; t++) {
        const float *c = cosine + t * half, *s = sine + t * half;
        for (int64_t h = 0; h < turned; h++) {
            float *restrict one = fused + (t * heads + h) * size, *restrict other = one + half;
            for (int64_t i = 0; i < half; i++) {
                float first = one[i], second = other[i], turn = sign * s[i];
                one[i] = first * c[i] - second * turn;
                other[i] = second * c[i] + first * turn;
            }
        }
    }
}

typedef struct {
    const float *at;
    int64_t row, column; /* strides */
} Matrix;

/* to [rows, 16 vectors] (+)= a [rows, depth] b [depth, 16 vectors]; sums stay in registers, rows and vectors are known */
static inline __attribute__((always_inline)) void block_product(int rows, int vectors, int64_t depth, Matrix a,
                                                                const float *b, int64_t b_row, float *to, int64_t to_row,
                                                                int adds) {
    lanes sums[ROWS][2];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) sums[i][v] = adds ? *(lanes *)(to + i * to_row + v * LANES) : (lanes){0};
    for (int64_t k = 0; k < depth; k++) {
        const float *factors = a.at + k * a.column;
        lanes first = *(const lanes *)(b + k * b_row), second = first;
        if (vectors > 1) second = *(const lanes *)(b + k * b_row + LANES);
        for (int i = 0; i < rows; i++) {
            sums[i][0] += factors[i * a.row] * first;
            if (vectors > 1) sums[i][1] += factors[i * a.row] * second;
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) *(lanes *)(to + i * to_row + v * LANES) = sums[i][v];
}

/* the same for any number of rows, and of columns that is a multiple of 16 */
static void product(int64_t rows, int64_t columns, int64_t depth, Matrix a, const float *b, int64_t b_row, float *to,
                    int64_t to_row, int adds) {
    for (int64_t j = 0; j < columns; j += 2 * LANES) {
        int is_pair = columns - j >= 2 * LANES;
        for (int64_t i = 0; i < rows;) {
            Matrix part = {a.at + i * a.row, a.row, a.column};
            float *into = to + i * to_row + j;
            int64_t count = rows - i >= ROWS ? ROWS : rows - i >= 4 ? 4 : 1;
            if (count == ROWS && is_pair) block_product(ROWS, 2, depth, part, b + j, b_row, into, to_row, adds);
            else if (count == ROWS) block_product(ROWS, 1, depth, part, b + j, b_row, into, to_row, adds);
            else if (count == 4 && is_pair) block_product(4, 2, depth, part, b + j, b_row, into, to_row, adds);
            else if (count == 4) block_product(4, 1, depth, part, b + j, b_row, into, to_row, adds);
            else if (is_pair) block_product(1, 2, depth, part, b + j, b_row, into, to_row, adds);
            else block_product(1, 1, depth, part, b + j, b_row, into, to_row, adds);
            i += count;
        }
    }
}

typedef struct {
    int64_t blocks, tokens, queries, keys, size, longest; /* longest: keys that a block sees, up to a multiple of 16 */
    const int32_t *table;  /* [blocks, 4]: first query, queries, first key of the sequence, place of the first query */
    const int32_t *behind; /* the token behind each key; NULL: keys are tokens */
    float scale;
} Plan;

static int64_t rounded(int64_t count) { return (count + LANES - 1) / LANES * LANES; }

static int64_t token_of(const Plan *plan, int64_t key) { return plan->behind ? plan->behind[key] : key; }

/* one head of all keys that a block sees: rows [keys, size] and columns [size, longest], zero up to a multiple of 16 */
static void gather(const Plan *plan, const int32_t *block, const float *fused, int64_t head, float *rows, float *columns) {
    int64_t size = plan->size, width = (plan->queries + 2 * plan->keys) * size, seen = block[3] + block[1];
    for (int64_t j = 0; j < rounded(seen); j++) {
        const float *from = j < seen ? fused + token_of(plan, block[2] + j) * width + head * size : 0;
        for (int64_t i = 0; rows && i < size; i++) rows[j * size + i] = from ? from[i] : 0;
        for (int64_t i = 0; columns && i < size; i++) columns[i * plan->longest + j] = from ? from[i] : 0;
    }
}

static float *own(float *scratch, int64_t size) {
#ifdef _OPENMP
    extern int omp_get_thread_num(void);
    return scratch + omp_get_thread_num() * size;
#else
    return scratch;
#endif
}

/* which of 16 numbers are among the first `count` */
static inline flags among(int64_t count) {
    const flags index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return index < (int32_t)(count < LANES ? count : LANES);
}

/* the same as `exponential`, of numbers that are at most about 0; those after the first `seen` give 0 */
static inline lanes exponentials(lanes x, int64_t seen) {
    const float round = 12582912; /* 1.5 * 2^23: added and subtracted, it leaves an integer */
    x = chosen(x < -87.0f, (lanes){0} - 87.0f, x);
    lanes power = (x * 1.44269504f + round) - round, rest = x - power * 0.693145752f - power * 1.42860677e-6f;
    lanes series = rest * (1 / 720.0f) + 1 / 120.0f;
    series = series * rest + 1 / 24.0f;
    series = series * rest + 1 / 6.0f;
    series = series * rest + 0.5f;
    series = series * rest + 1;
    series = series * rest + 1;
    lanes two_to_power = (lanes)((__builtin_convertvector(power, flags) + 127) << 23);
    return chosen(among(seen), series * two_to_power, (lanes){0});
}

/* scores -> weights that sum to 1 over the first `seen`, 0 for the others; the logarithm of their sum in base 2 */
static inline float weigh(float *scores, float scale, int64_t seen, int64_t count) {
    lanes tops = (lanes){0} - INFINITY, totals = {0};
    for (int64_t j = 0; j < count; j += LANES) {
        lanes part = *(lanes *)(scores + j);
        tops = chosen(among(seen - j) & (part > tops), part, tops);
    }
    float most = tops[0], total = 0;
    for (int i = 1; i < LANES; i++) most = tops[i] > most ? tops[i] : most;
    for (int64_t j = 0; j < count; j += LANES) {
        lanes part = exponentials((*(lanes *)(scores + j) - most) * scale, seen - j);
        *(lanes *)(scores + j) = part;
        totals += part;
    }
    for (int i = 0; i < LANES; i++) total += totals[i];
    float share = 1 / total;
    for (int64_t j = 0; j < count; j += LANES) *(lanes *)(scores + j) *= share;
    return (most * scale + logf(total)) * 1.44269504f;
}

/* fused [tokens, H + 2K, D] -> output [tokens, H, D], level [H, tokens]; scratch [threads, longest (2 D + ROWS)] */
void attend(const Plan *plan, const float *fused, float *output, float *level, float *scratch, int threads) {
    int64_t size = plan->size, group = plan->queries / plan->keys, width = (plan->queries + 2 * plan->keys) * size;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic, 4)
    for (int64_t b = 0; b < plan->blocks; b++)
        for (int64_t k = 0; k < plan->keys; k++) {
            const int32_t *block = plan->table + 4 * b;
            float *keys = own(scratch, plan->longest * (2 * size + ROWS)), *values = keys + plan->longest * size;
            float *scores = values + plan->longest * size;
            gather(plan, block, fused, plan->queries + k, 0, keys);
            gather(plan, block, fused, plan->queries + plan->keys + k, values, 0);
            for (int64_t h = k * group; h < (k + 1) * group; h++)
                for (int64_t first = 0; first < block[1]; first += ROWS) {
                    int64_t rows = block[1] - first < ROWS ? block[1] - first : ROWS, token = block[0] + first;
                    int64_t count = rounded(block[3] + first + rows);
                    Matrix queries = {fused + token * width + h * size, width, 1}, weights = {scores, count, 1};
                    product(rows, count, size, queries, keys, plan->longest, scores, count, 0);
                    for (int64_t i = 0; i < rows; i++)
                        level[h * plan->tokens + token + i] =
                            weigh(scores + i * count, plan->scale, block[3] + first + i + 1, count);
                    product(rows, size, count, weights, values, size, output + (token * plan->queries + h) * size,
                            plan->queries * size, 0);
                }
        }
}

/* With P = softmax(S): dV = P' dO, dS = P (dO V' - sum(dO O)), dQ = dS K, dK = dS' Q. `found` [tokens, H + 2K, D] begins
   as 0; a thread has all blocks of one head of keys, which several of them may share.
   scratch [threads, longest (5 D + 2 ROWS)] */
void attend_back(const Plan *plan, const float *d_output, const float *fused, const float *output, const float *level,
                 float *found, float *scratch, int threads) {
    int64_t size = plan->size, group = plan->queries / plan->keys, width = (plan->queries + 2 * plan->keys) * size;
    int64_t longest = plan->longest, output_width = plan->queries * size;
#pragma omp parallel for num_threads(threads)
    for (int64_t k = 0; k < plan->keys; k++)
        for (int64_t b = 0; b < plan->blocks; b++) {
            const int32_t *block = plan->table + 4 * b;
            int64_t seen = block[3] + block[1];
            float *keys = own(scratch, longest * (5 * size + 2 * ROWS)), *key_columns = keys + longest * size;
            float *value_columns = key_columns + longest * size, *d_keys = value_columns + longest * size;
            float *d_values = d_keys + longest * size, *weights = d_values + longest * size;
            float *d_scores = weights + longest * ROWS;
            gather(plan, block, fused, plan->queries + k, keys, key_columns);
            gather(plan, block, fused, plan->queries + plan->keys + k, 0, value_columns);
            memset(d_keys, 0, 2 * longest * size * sizeof(float));
            for (int64_t h = k * group; h < (k + 1) * group; h++)
                for (int64_t first = 0; first < block[1]; first += ROWS) {
                    int64_t rows = block[1] - first < ROWS ? block[1] - first : ROWS, token = block[0] + first;
                    int64_t count = rounded(block[3] + first + rows);
                    const float *query = fused + token * width + h * size;
                    const float *pull = d_output + token * output_width + h * size;
                    const float *own_output = output + token * output_width + h * size;
                    Matrix queries = {query, width, 1}, pulls = {pull, output_width, 1};
                    product(rows, count, size, queries, key_columns, longest, weights, count, 0);
                    product(rows, count, size, pulls, value_columns, longest, d_scores, count, 0);
                    for (int64_t i = 0; i < rows; i++) {
                        float *weight = weights + i * count, *d_score = d_scores + i * count;
                        float height = level[h * plan->tokens + token + i] * 0.693147181f;
                        float mean = dot(pull + i * output_width, own_output + i * output_width, size);
                        int64_t last = block[3] + first + i + 1;
                        for (int64_t j = 0; j < count; j += LANES) {
                            lanes part = exponentials(*(lanes *)(weight + j) * plan->scale - height, last - j);
                            *(lanes *)(weight + j) = part;
                            *(lanes *)(d_score + j) = part * (*(lanes *)(d_score + j) - mean) * plan->scale;
                        }
                    }
                    Matrix of_query = {d_scores, count, 1}, of_key = {d_scores, 1, count}, of_value = {weights, 1, count};
                    product(rows, size, count, of_query, keys, size, found + token * width + h * size, width, 0);
                    product(count, size, rows, of_key, query, width, d_keys, size, 1);
                    product(count, size, rows, of_value, pull, output_width, d_values, size, 1);
                }
            for (int64_t j = 0; j < seen; j++) {
                float *to = found + token_of(plan, block[2] + j) * width + (plan->queries + k) * size;
                for (int64_t i = 0; i < size; i++) to[i] += d_keys[j * size + i];
                for (int64_t i = 0; i < size; i++) to[plan->keys * size + i] += d_values[j * size + i];
            }
        }
}
