/* Causal attention over packed sequences in float32, forward and backward.

   Scores lie as [keys, STRIP]: a vector holds one key's scores of several queries, so that maxima, exponentials and sums
   go down the keys and never across a vector. What no query of a strip sees is not computed. Every number is a sum in a
   fixed order, whoever computes it. */

#ifdef __AVX512F__
enum { TALL = 8, STRIP = 32 }; /* rows of a tile; queries that go together */
#else
enum { TALL = 6, STRIP = 16 };
#endif
enum { WIDE = 2 }; /* vectors of a tile's columns */

#define INLINE static inline __attribute__((always_inline))

typedef struct {
    const float *at;
    int64_t row, column; /* strides */
} Matrix;

/* to [rows, vectors LANES] (+)= a [rows, depth] b [depth, ...]; sums stay in registers: rows and vectors are known */
INLINE void tile(int rows, int vectors, int64_t depth, Matrix a, const float *b, int64_t b_row, float *to, int64_t to_row,
                 int adds) {
    lanes sums[TALL][WIDE];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) sums[i][v] = adds ? *(lanes *)(to + i * to_row + v * LANES) : (lanes){0};
    for (int64_t k = 0; k < depth; k++) {
        const float *factors = a.at + k * a.column;
        lanes others[WIDE];
        for (int v = 0; v < vectors; v++) others[v] = *(const lanes *)(b + k * b_row + v * LANES);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < vectors; v++) sums[i][v] += factors[i * a.row] * others[v];
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < vectors; v++) *(lanes *)(to + i * to_row + v * LANES) = sums[i][v];
}

/* the same for any number of rows */
INLINE void tiles(int vectors, int64_t rows, int64_t depth, Matrix a, const float *b, int64_t b_row, float *to,
                  int64_t to_row, int adds) {
    while (rows) {
        int count = rows >= TALL ? TALL : rows >= 4 ? 4 : rows >= 2 ? 2 : 1;
        if (count == TALL) tile(TALL, vectors, depth, a, b, b_row, to, to_row, adds);
        else if (count == 4) tile(4, vectors, depth, a, b, b_row, to, to_row, adds);
        else if (count == 2) tile(2, vectors, depth, a, b, b_row, to, to_row, adds);
        else tile(1, vectors, depth, a, b, b_row, to, to_row, adds);
        rows -= count, a.at += count * a.row, to += count * to_row;
    }
}

/* and of columns that is a multiple of LANES */
static void product(int64_t rows, int64_t columns, int64_t depth, Matrix a, const float *b, int64_t b_row, float *to,
                    int64_t to_row, int adds) {
    int64_t j = 0;
    for (; j + WIDE * LANES <= columns; j += WIDE * LANES) tiles(WIDE, rows, depth, a, b + j, b_row, to + j, to_row, adds);
    if (j < columns) tiles(1, rows, depth, a, b + j, b_row, to + j, to_row, adds);
}

typedef struct {
    int64_t blocks, tokens, queries, keys, size, longest; /* longest: keys that a block sees at most */
    const int32_t *table;  /* [blocks, 4]: first query, queries, first key of the sequence, place of the first query */
    const int32_t *behind; /* the token behind each key; NULL: keys are tokens */
    float scale;
} Plan;

static int64_t token_of(const Plan *plan, int64_t key) { return plan->behind ? plan->behind[key] : key; }

/* one head of the first `count` keys that a block sees: [count, size] */
static void gather(const Plan *plan, const int32_t *block, int64_t count, const float *fused, int64_t head, float *rows) {
    int64_t size = plan->size, width = (plan->queries + 2 * plan->keys) * size;
    for (int64_t j = 0; j < count; j++)
        memcpy(rows + j * size, fused + token_of(plan, block[2] + j) * width + head * size, size * sizeof(float));
}

/* rows [count, size] of a stride -> [size, STRIP], zero beyond them */
static void turn(const float *rows, int64_t stride, int64_t count, int64_t size, float *restrict columns) {
    if (count < STRIP) memset(columns, 0, size * STRIP * sizeof(float));
    for (int64_t r = 0; r < count; r++) {
        for (int64_t i = 0; i < size; i += LANES) __builtin_prefetch(rows + (r + STRIP) * stride + i); /* the next strip */
        for (int64_t i = 0; i < size; i++) columns[i * STRIP + r] = rows[r * stride + i];
    }
}

/* as `exponential`, of numbers that are at most about 0; 0 below -87 */
INLINE lanes exponentials(lanes x) {
    const float round = 12582912; /* 1.5 * 2^23: added and subtracted, it leaves an integer */
    lanes power = (x * 1.44269504f + round) - round, rest = x - power * 0.693145752f - power * 1.42860677e-6f;
    lanes series = rest * (1 / 720.0f) + 1 / 120.0f;
    series = series * rest + 1 / 24.0f;
    series = series * rest + 1 / 6.0f;
    series = series * rest + 0.5f;
    series = series * rest + 1;
    series = series * rest + 1;
    lanes two_to_power = (lanes)((__builtin_convertvector(power, flags) + 127) << 23);
    return (lanes)(~(x < -87.0f) & (flags)(series * two_to_power));
}

/* Queries of one head that go together: `rows` of them from `token` on, of which the first sees `seen` keys. */
typedef struct {
    int64_t token, rows, seen, keys, columns; /* keys that the last one sees; rows up to a multiple of LANES */
} Strip;

static Strip strip_of(const int32_t *block, int64_t first) {
    int64_t rows = block[1] - first < STRIP ? block[1] - first : STRIP;
    int64_t columns = (rows + LANES - 1) / LANES * LANES;
    return (Strip){block[0] + first, rows, block[3] + first + 1, block[3] + first + rows, columns};
}

/* what a query does not see is far below everything */
static void hide(const Strip *strip, float *scores) {
    for (int64_t j = strip->seen; j < strip->keys; j++)
        for (int64_t r = 0; r <= j - strip->seen; r++) scores[j * STRIP + r] = -INFINITY;
}

/* scores [keys, LANES of STRIP] -> their exponentials below the highest; highest and sums: [LANES] */
INLINE void weigh(float *scores, int64_t keys, float scale, float *highest, float *totals) {
    lanes top = *(lanes *)scores, second = top, sum = {0}; /* two highest: one would wait for itself */
    int64_t end = keys * STRIP, even = keys / 2 * 2 * STRIP;
    for (int64_t at = 0; at < even; at += 2 * STRIP) {
        top = higher(*(lanes *)(scores + at), top);
        second = higher(*(lanes *)(scores + at + STRIP), second);
    }
    if (even < end) top = higher(*(lanes *)(scores + even), top);
    top = higher(second, top);
    for (int64_t at = 0; at < end; at += STRIP) {
        lanes weight = exponentials((*(lanes *)(scores + at) - top) * scale);
        *(lanes *)(scores + at) = weight;
        sum += weight;
    }
    *(lanes *)highest = top;
    *(lanes *)totals = sum;
}

/* floats of scratch that each thread needs */
int64_t attention_room(const Plan *plan) {
    return plan->longest * (4 * plan->size + 2 * STRIP) + plan->size * STRIP;
}

/* One strip of one head of queries over keys and values [seen, size]. */
static void strip_forward(const Plan *plan, const float *fused, Strip strip, int64_t h, const float *keys,
                          const float *values, float *output, float *level, float *scores) {
    int64_t size = plan->size, width = (plan->queries + 2 * plan->keys) * size, output_width = plan->queries * size;
    float highest[STRIP], totals[STRIP], *columns = scores + plan->longest * STRIP;
    float *to = output + strip.token * output_width + h * size;
    turn(fused + strip.token * width + h * size, width, strip.rows, size, columns);
    product(strip.keys, strip.columns, size, (Matrix){keys, size, 1}, columns, STRIP, scores, STRIP, 0);
    hide(&strip, scores);
    for (int64_t r = 0; r < strip.columns; r += LANES) weigh(scores + r, strip.keys, plan->scale, highest + r, totals + r);
    product(strip.rows, size, strip.keys, (Matrix){scores, 1, STRIP}, values, size, to, output_width, 0);
    for (int64_t r = 0; r < strip.rows; r++, to += output_width) {
        float share = 1 / totals[r];
        for (int64_t i = 0; i < size; i++) to[i] *= share;
        level[h * plan->tokens + strip.token + r] = (highest[r] * plan->scale + logf(totals[r])) * 1.44269504f;
    }
}

/* fused [tokens, H + 2K, D] -> output [tokens, H, D], level [H, tokens] */
void attend(const Plan *plan, const float *fused, float *output, float *level, float *scratch, int threads) {
    int64_t group = plan->queries / plan->keys, space = plan->longest * plan->size;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(dynamic, 4)
    for (int64_t b = 0; b < plan->blocks; b++)
        for (int64_t k = 0; k < plan->keys; k++) {
            const int32_t *block = plan->table + 4 * b;
            float *keys = scratch + thread_here() * attention_room(plan), *values = keys + space;
            gather(plan, block, block[3] + block[1], fused, plan->queries + k, keys);
            gather(plan, block, block[3] + block[1], fused, plan->queries + plan->keys + k, values);
            for (int64_t h = k * group; h < (k + 1) * group; h++)
                for (int64_t first = 0; first < block[1]; first += STRIP)
                    strip_forward(plan, fused, strip_of(block, first), h, keys, values, output, level, values + space);
        }
}

/* scores and what pulls at the weights [keys, STRIP] -> weights and what pulls at the scores; heights, means: [STRIP] */
static void weigh_back(const Strip *strip, float *scores, float *pulls, const float *heights, const float *means,
                       float scale) {
    hide(strip, scores);
    for (int64_t r = 0; r < strip->columns; r += LANES) {
        lanes height = *(const lanes *)(heights + r), mean = *(const lanes *)(means + r);
        for (int64_t at = r; at < strip->keys * STRIP; at += STRIP) {
            lanes weight = exponentials(*(lanes *)(scores + at) * scale - height);
            *(lanes *)(scores + at) = weight;
            *(lanes *)(pulls + at) = weight * (*(lanes *)(pulls + at) - mean) * scale;
        }
    }
}

typedef struct {
    const float *pulls, *fused, *output, *level; /* [tokens, H, D], [tokens, H + 2K, D], [tokens, H, D], [H, tokens] */
    float *found;                                /* [tokens, H + 2K, D] */
} Back;

/* One strip of one head of queries: what it finds of its queries, and adds to that of keys and values [seen, size]. */
static void strip_back(const Plan *plan, const Back *back, Strip strip, int64_t h, const float *keys, const float *values,
                       float *d_keys, float *d_values, float *scratch) {
    int64_t size = plan->size, width = (plan->queries + 2 * plan->keys) * size, output_width = plan->queries * size;
    float *weights = scratch, *d_scores = weights + plan->longest * STRIP, *columns = d_scores + plan->longest * STRIP;
    float heights[STRIP] = {0}, means[STRIP] = {0};
    const float *query = back->fused + strip.token * width + h * size;
    const float *pull = back->pulls + strip.token * output_width + h * size;
    const float *own = back->output + strip.token * output_width + h * size;
    for (int64_t r = 0; r < strip.rows; r++) {
        heights[r] = back->level[h * plan->tokens + strip.token + r] * 0.693147181f;
        means[r] = dot(pull + r * output_width, own + r * output_width, size);
    }
    turn(query, width, strip.rows, size, columns);
    product(strip.keys, strip.columns, size, (Matrix){keys, size, 1}, columns, STRIP, weights, STRIP, 0);
    turn(pull, output_width, strip.rows, size, columns);
    product(strip.keys, strip.columns, size, (Matrix){values, size, 1}, columns, STRIP, d_scores, STRIP, 0);
    weigh_back(&strip, weights, d_scores, heights, means, plan->scale);
    float *d_query = back->found + strip.token * width + h * size;
    product(strip.rows, size, strip.keys, (Matrix){d_scores, 1, STRIP}, keys, size, d_query, width, 0);
    product(strip.keys, size, strip.rows, (Matrix){d_scores, STRIP, 1}, query, width, d_keys, size, 1);
    product(strip.keys, size, strip.rows, (Matrix){weights, STRIP, 1}, pull, output_width, d_values, size, 1);
}

/* One block of queries and one head of keys. */
static void block_back(const Plan *plan, const Back *back, const int32_t *block, int64_t k, float *keys) {
    int64_t size = plan->size, group = plan->queries / plan->keys, width = (plan->queries + 2 * plan->keys) * size;
    int64_t seen = block[3] + block[1], space = plan->longest * size;
    float *values = keys + space, *d_keys = values + space, *d_values = d_keys + space;
    gather(plan, block, seen, back->fused, plan->queries + k, keys);
    gather(plan, block, seen, back->fused, plan->queries + plan->keys + k, values);
    memset(d_keys, 0, seen * size * sizeof(float));
    memset(d_values, 0, seen * size * sizeof(float));
    for (int64_t h = k * group; h < (k + 1) * group; h++)
        for (int64_t first = 0; first < block[1]; first += STRIP)
            strip_back(plan, back, strip_of(block, first), h, keys, values, d_keys, d_values, d_values + space);
    for (int64_t j = 0; j < seen; j++) {
        float *to = back->found + token_of(plan, block[2] + j) * width + (plan->queries + k) * size;
        for (int64_t i = 0; i < size; i++) to[i] += d_keys[j * size + i];
        for (int64_t i = 0; i < size; i++) to[plan->keys * size + i] += d_values[j * size + i];
    }
}

/* With P = softmax(S): dV = P' dO, dS = P (dO V' - sum(dO O)), dQ = dS K, dK = dS' Q. `found` begins as 0; blocks may
   share keys, so a head of them belongs to one thread, which takes the blocks in their order. */
void attend_back(const Plan *plan, const float *d_output, const float *fused, const float *output, const float *level,
                 float *found, float *scratch, int threads) {
    Back back = {d_output, fused, output, level, found};
#pragma omp parallel for num_threads(threads)
    for (int64_t t = 0; t < threads; t++)
        for (int64_t b = 0; b < plan->blocks; b++)
            for (int64_t k = t; k < plan->keys; k += threads)
                block_back(plan, &back, plan->table + 4 * b, k, scratch + t * attention_room(plan));
}
