/* What a decode step computes between its matrix multiplications, in float32 on a CPU: one pass each, no masks, no padding.

   Keys and values lie as [rows, K, capacity, D], where D is a multiple of LANES. Every token is computed by itself, so
   what comes out does not depend on what else is in the batch, nor on the number of threads. */

#include "vectors.h"
#include "swiglu.h"

enum { MOST_WORK_OF_ONE_THREAD = 1 << 21 }; /* multiplications; waking another thread costs as much */

/* what is handed over as a number is known where such a function is used: its loops are unrolled, its sums in registers */
#define INLINE static inline __attribute__((always_inline))
#define FOLD(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)

/* halves of a vector change places, then halves of halves, down to two */
#if LANES == 16
#define HALVES(x) FOLD(x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define QUARTERS(x) FOLD(x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define EIGHTHS(x) FOLD(x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#elif LANES == 8
#define HALVES(x) x
#define QUARTERS(x) FOLD(x, 4, 5, 6, 7, 0, 1, 2, 3)
#define EIGHTHS(x) FOLD(x, 2, 3, 0, 1, 6, 7, 4, 5)
#else
#define HALVES(x) x
#define QUARTERS(x) x
#define EIGHTHS(x) FOLD(x, 2, 3, 0, 1)
#endif

static inline float sum(lanes x) {
    if (LANES == 16) x += HALVES(x);
    if (LANES >= 8) x += QUARTERS(x);
    x += EIGHTHS(x);
    return x[0] + x[1];
}

static inline float highest(lanes x) {
    x = higher(x, HALVES(x));
    x = higher(x, QUARTERS(x));
    x = higher(x, EIGHTHS(x));
    return x[0] > x[1] ? x[0] : x[1];
}

static float inverse_root_mean_square(const float *x, int64_t count, float epsilon) {
    lanes squares = {0};
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        lanes part = *(const lanes *)(x + i);
        squares += part * part;
    }
    float total = sum(squares);
    for (; i < count; i++) total += x[i] * x[i];
    return 1 / sqrtf(total / count + epsilon);
}

/* residual [T, width] += delta, where there is one; out: what it is after normalisation */
void add_norm(int64_t tokens, int64_t width, float *residual, const float *delta, const float *weight, float epsilon,
              float *restrict out) {
    for (int64_t t = 0; t < tokens; t++, residual += width, out += width) {
        if (delta) {
            for (int64_t i = 0; i < width; i++) residual[i] += delta[t * width + i];
        }
        float scale = inverse_root_mean_square(residual, width, epsilon);
        for (int64_t i = 0; i < width; i++) out[i] = residual[i] * scale * weight[i];
    }
}

/* gate_up [T, 2 * width] -> out [T, width] */
void swiglu(int64_t tokens, int64_t width, const float *gate_up, float *restrict out, int threads) {
#pragma omp parallel for num_threads(threads) if (tokens * width * 16 > MOST_WORK_OF_ONE_THREAD)
    for (int64_t t = 0; t < tokens; t++) gated(width, gate_up + t * 2 * width, out + t * width);
}

/* Normalise one head where the family does, and turn it by its position. */
static void turn(float *restrict head, int64_t size, const float *norm, float epsilon, const float *cosine,
                 const float *sine) {
    if (norm) {
        float scale = inverse_root_mean_square(head, size, epsilon);
        for (int64_t i = 0; i < size; i++) head[i] *= scale * norm[i];
    }
    float *restrict other = head + size / 2;
    for (int64_t i = 0; i < size / 2; i++) {
        float first = head[i], second = other[i];
        head[i] = first * cosine[i] - second * sine[i];
        other[i] = second * cosine[i] + first * sine[i];
    }
}

typedef struct {
    int64_t tokens, query_heads, key_heads, size, capacity;
    const int64_t *rows, *positions; /* [T] */
    float *heads;                    /* [T, H + 2K, D] */
    float *keys, *values;
    const int64_t *lenders, *shared; /* [T]: the first `shared` keys of a token's row are those of row `lender` too; or NULL */
} Step;

static float *place(const Step *step, float *memory, int64_t row, int64_t head, int64_t position) {
    return memory + ((row * step->key_heads + head) * step->capacity + position) * step->size;
}

/* Turn queries and keys in place, and put keys and values where they belong. cosine, sine [C, D / 2] */
void store(const Step *step, const float *cosine, const float *sine, const float *query_norm, const float *key_norm,
           float epsilon) {
    int64_t size = step->size, num_queries = step->query_heads, num_keys = step->key_heads;
    for (int64_t t = 0; t < step->tokens; t++) {
        float *head = step->heads + t * (num_queries + 2 * num_keys) * size;
        int64_t position = step->positions[t], angle = position * size / 2;
        for (int64_t h = 0; h < num_queries + num_keys; h++)
            turn(head + h * size, size, h < num_queries ? query_norm : key_norm, epsilon, cosine + angle, sine + angle);
        for (int64_t k = 0; k < num_keys; k++) {
            const float *key = head + (num_queries + k) * size, *value = key + num_keys * size;
            memcpy(place(step, step->keys, step->rows[t], k, position), key, size * sizeof(float));
            memcpy(place(step, step->values, step->rows[t], k, position), value, size * sizeof(float));
        }
    }
}

/* Let a row begin with the first `length` keys and values of another. */
void share(const Step *step, int64_t source, int64_t destination, int64_t length) {
    size_t bytes = length * step->size * sizeof(float);
    for (int64_t k = 0; k < step->key_heads; k++) {
        memcpy(place(step, step->keys, destination, k, 0), place(step, step->keys, source, k, 0), bytes);
        memcpy(place(step, step->values, destination, k, 0), place(step, step->values, source, k, 0), bytes);
    }
}

/* Rows come one after the other and are in no cache when their turn comes: ask for the next ones in time, into the second
   cache. The first one has so few requests under way that asking into it takes 1.4 times as long. */
INLINE void fetch(const float *from, int64_t count) {
    for (int64_t i = 0; i < count; i += LANES) __builtin_prefetch(from + i, 0, 2);
}

INLINE lanes product(const float *query, const float *key, int64_t size) {
    lanes total = *(const lanes *)query * *(const lanes *)key;
    for (int64_t i = LANES; i < size; i += LANES) total += *(const lanes *)(query + i) * *(const lanes *)(key + i);
    return total;
}

/* neighbours within four lanes, fours beside fours: each is one instruction without a table */
#if LANES == 16
#define TWO_EVEN 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define TWO_ODD 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define ONE_EVEN 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30
#define ONE_ODD 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31
#define FRONTS 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define BACKS 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define FOUR_EVEN 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27
#define FOUR_ODD 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31
#elif LANES == 8
#define ONE_EVEN 0, 2, 8, 10, 4, 6, 12, 14
#define ONE_ODD 1, 3, 9, 11, 5, 7, 13, 15
#define FRONTS 0, 1, 2, 3, 8, 9, 10, 11
#define BACKS 4, 5, 6, 7, 12, 13, 14, 15
#else
#define ONE_EVEN 0, 2, 4, 6
#define ONE_ODD 1, 3, 5, 7
#endif
/* halves the number of vectors: each of the result has its lanes from two, neighbours added */
#define ADD_PAIRS(parts, count, first, second)                                                      \
    for (int i = 0; i < count; i++)                                                                 \
        parts[i] = __builtin_shufflevector(parts[2 * i], parts[2 * i + 1], first) +                 \
                   __builtin_shufflevector(parts[2 * i], parts[2 * i + 1], second);

/* The scores of up to LANES keys, one in each lane. */
INLINE lanes scores_of(const float *query, const float *keys, int64_t count, int64_t size) {
    lanes parts[LANES];
    if (count >= LANES) {
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++) parts[j] = product(query, keys + j * size, size);
    } else {
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++) parts[j] = j < count ? product(query, keys + j * size, size) : (lanes){0};
    }
#if LANES == 16
    ADD_PAIRS(parts, 8, TWO_EVEN, TWO_ODD)
    ADD_PAIRS(parts, 4, ONE_EVEN, ONE_ODD)
    ADD_PAIRS(parts, 2, FRONTS, BACKS)
    ADD_PAIRS(parts, 1, FOUR_EVEN, FOUR_ODD)
#elif LANES == 8
    ADD_PAIRS(parts, 4, ONE_EVEN, ONE_ODD)
    ADD_PAIRS(parts, 2, ONE_EVEN, ONE_ODD)
    ADD_PAIRS(parts, 1, FRONTS, BACKS)
#else
    ADD_PAIRS(parts, 2, ONE_EVEN, ONE_ODD)
    ADD_PAIRS(parts, 1, ONE_EVEN, ONE_ODD)
#endif
    return parts[0];
}

/* Keys or values of one row and head. The first ones may be read where another row has them: siblings then read the
   same memory one after the other, and find it in the cache. */
typedef struct {
    const float *shared, *own;
    int64_t near; /* this many are shared, a multiple of LANES */
} Span;

static inline const float *at(Span span, int64_t j, int64_t size) {
    return (j < span.near ? span.shared : span.own) + j * size;
}

static inline Span span_of(const Step *step, const float *memory, int64_t t, int64_t head, int64_t first) {
    int64_t row = step->rows[t], lender = step->lenders ? step->lenders[t] : row;
    int64_t near = step->lenders && step->shared[t] > first ? (step->shared[t] - first) / LANES * LANES : 0;
    float *from = (float *)memory;
    return (Span){place(step, from, lender, head, first), place(step, from, row, head, first), near};
}

/* One query's weights over `count` keys, which sum to 1; there is room for LANES more. `next` is what is read after. */
INLINE void weigh(const float *query, Span keys, float scale, int64_t count, int64_t size, float *weights, Span next) {
    static const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const flags index = *(const flags *)numbers;
    lanes top = (lanes){0} - INFINITY, total = {0};
    for (int64_t j = 0; j < count; j += LANES) {
        fetch(at(next, j, size), LANES * size);
        lanes scores = scale * scores_of(query, at(keys, j, size), count - j, size);
        scores = chosen(index < (int32_t)(count - j), scores, (lanes){0} - INFINITY);
        *(lanes *)(weights + j) = scores;
        top = higher(scores, top);
    }
    float most = highest(top);
    int64_t end = (count + LANES - 1) / LANES * LANES;
    for (int64_t j = 0; j < end; j++) weights[j] = exponential(weights[j] - most);
    for (int64_t j = count; j < end; j++) weights[j] = 0;
    for (int64_t j = 0; j < end; j += LANES) total += *(lanes *)(weights + j);
    float share = 1 / sum(total);
    for (int64_t j = 0; j < end; j += LANES) *(lanes *)(weights + j) *= share;
}

/* `vectors` of the sum of values; known where this is compiled in */
INLINE void weighted_part(int vectors, const float *weights, Span values, int64_t count, int64_t size, float *out, Span next,
                          int64_t fetched) {
    lanes sums[4][2] = {0}; /* four of each: one would wait for itself */
    int64_t j = 0;
    for (; j + 4 <= count; j += 4) {
        fetch(at(next, j, size), fetched);
        const float *from = at(values, j, size);
        for (int i = 0; i < 4; i++)
            for (int v = 0; v < vectors; v++) sums[i][v] += weights[j + i] * *(const lanes *)(from + i * size + v * LANES);
    }
    for (; j < count; j++)
        for (int v = 0; v < vectors; v++) sums[0][v] += weights[j] * *(const lanes *)(at(values, j, size) + v * LANES);
    for (int v = 0; v < vectors; v++)
        *(lanes *)(out + v * LANES) = (sums[0][v] + sums[1][v]) + (sums[2][v] + sums[3][v]);
}

INLINE void weighted(const float *weights, Span values, int64_t count, int64_t size, float *restrict out, Span next) {
    for (int64_t i = 0; i < size; i += 2 * LANES, values.shared += 2 * LANES, values.own += 2 * LANES) {
        int64_t fetched = i == 0 ? 4 * size : 0; /* once is enough */
        if (size - i > LANES) weighted_part(2, weights, values, count, size, out + i, next, fetched);
        else weighted_part(1, weights, values, count, size, out + i, next, fetched);
    }
}

/* One head of a token over `count` keys of its row from `first` on. */
INLINE void attend_head(const Step *step, int64_t t, int64_t h, int64_t size, float scale, int64_t first, float *out,
                        float *weights) {
    int64_t group = step->query_heads / step->key_heads, count = step->positions[t] + 1 - first;
    const float *query = step->heads + (t * (step->query_heads + 2 * step->key_heads) + h) * size;
    Span keys = span_of(step, step->keys, t, h / group, first), values = span_of(step, step->values, t, h / group, first);
    int is_last = h + 1 == step->query_heads;
    int64_t after = is_last && t + 1 < step->tokens ? t + 1 : t;
    Span next = span_of(step, step->keys, after, is_last ? 0 : (h + 1) / group, first);
    weigh(query, keys, scale, count, size, weights, values);
    weighted(weights, values, count, size, out, next);
}

/* One token sees its row up to itself, at most `window` tokens: out [H, D]. weights [capacity + LANES] */
static void attend_token(const Step *step, int64_t t, float scale, int64_t window, float *out, float *weights) {
    int64_t size = step->size, last = step->positions[t] + 1, first = last > window ? last - window : 0;
    for (int64_t h = 0; h < step->query_heads; h++, out += size) {
        if (size == 32) attend_head(step, t, h, 32, scale, first, out, weights);
        else if (size == 64) attend_head(step, t, h, 64, scale, first, out, weights);
        else attend_head(step, t, h, size, scale, first, out, weights);
    }
}

/* out [T, H, D]. scratch [threads, capacity + LANES] */
void attend(const Step *step, float scale, int64_t window, float *out, float *scratch, int threads) {
    int64_t size = step->size, seen = 0;
    for (int64_t t = 0; t < step->tokens; t++) seen += step->positions[t] + 1;
#pragma omp parallel for num_threads(threads) if (seen * step->query_heads * size * 2 > MOST_WORK_OF_ONE_THREAD)
    for (int64_t t = 0; t < step->tokens; t++)
        attend_token(step, t, scale, window, out + t * step->query_heads * size,
                     scratch + thread_here() * (step->capacity + LANES));
}
