/* What a decode step computes between its matrix multiplications, in float32 on a CPU: one pass each, no masks, no padding.

   Keys and values lie in tiles of LANES tokens: keys [rows, K, tiles, D, LANES], so that one vector holds one coordinate
   of LANES keys and no sum runs across a vector; values [rows, K, tiles, LANES, D]. A tile may hold anything finite
   behind a row's last token: it gets the weight 0. D is a multiple of LANES. Every token is computed by itself, so what
   comes out does not depend on what else is in the batch, nor on the number of threads. */

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { LANES = 16, MOST_WORK_OF_ONE_THREAD = 1 << 21 }; /* multiplications; waking another thread costs as much */

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

typedef int32_t flags __attribute__((vector_size(4 * LANES), aligned(4)));

#define FOLD(x, ...) __builtin_shufflevector(x, x, __VA_ARGS__)

static inline float sum(lanes x) {
    x += FOLD(x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    x += FOLD(x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    x += FOLD(x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    return x[0] + x[1];
}

static inline lanes chosen(flags is_first, lanes first, lanes second) {
    return (lanes)((is_first & (flags)first) | (~is_first & (flags)second));
}

static inline float highest(lanes x) {
    lanes y = FOLD(x, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    x = chosen(x > y, x, y);
    y = FOLD(x, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    x = chosen(x > y, x, y);
    y = FOLD(x, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    x = chosen(x > y, x, y);
    return x[0] > x[1] ? x[0] : x[1];
}

/* Argument reduction to |rest| <= ln(2) / 2 in two steps, then the series to degree 6: within 2 ulp. NaN stays NaN. */
static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float power = rintf(x * 1.44269504f), rest = x - power * 0.693145752f - power * 1.42860677e-6f;
    float series = 1 / 720.0f;
    series = series * rest + 1 / 120.0f;
    series = series * rest + 1 / 24.0f;
    series = series * rest + 1 / 6.0f;
    series = series * rest + 0.5f;
    series = series * rest + 1;
    series = series * rest + 1;
    int32_t bits = ((int32_t)power + 127) * (1 << 23);
    float two_to_power;
    memcpy(&two_to_power, &bits, 4);
    return series * two_to_power;
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
    for (int64_t t = 0; t < tokens; t++) {
        const float *gate = gate_up + t * 2 * width, *up = gate + width;
        for (int64_t i = 0; i < width; i++) out[t * width + i] = gate[i] / (1 + exponential(-gate[i])) * up[i];
    }
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
    int64_t tokens, query_heads, key_heads, size, tiles; /* tiles: those of one row and head */
    const int64_t *rows, *positions;                     /* [T] */
    float *heads;                                        /* [T, H + 2K, D] */
    float *keys, *values;
} Step;

static float *tile(const Step *step, float *memory, int64_t row, int64_t head, int64_t index) {
    return memory + ((row * step->key_heads + head) * step->tiles + index) * step->size * LANES;
}

/* Ask for what will be needed next, [begin, end) of one head's tiles: a row's keys are in no cache when its turn comes. */
static void fetch(const Step *step, float *memory, int64_t token, int64_t head, int64_t begin, int64_t end) {
    if (head == step->key_heads) head = 0, token++;
    if (token == step->tokens) return;
    const float *from = tile(step, memory, step->rows[token], head, 0);
    for (int64_t i = begin * step->size; i < end * step->size; i += LANES) __builtin_prefetch(from + i);
}

/* Turn queries in place, keys on their way to their tiles; values go there as they are. cosine, sine [C, D / 2] */
void store(const Step *step, const float *cosine, const float *sine, const float *query_norm, const float *key_norm,
           float epsilon) {
    int64_t size = step->size, num_queries = step->query_heads, num_keys = step->key_heads;
    for (int64_t t = 0; t < step->tokens; t++) {
        float *head = step->heads + t * (num_queries + 2 * num_keys) * size;
        int64_t position = step->positions[t], at = position / LANES, lane = position % LANES;
        for (int64_t h = 0; h < num_queries + num_keys; h++)
            turn(head + h * size, size, h < num_queries ? query_norm : key_norm, epsilon, cosine + position * size / 2,
                 sine + position * size / 2);
        for (int64_t k = 0; k < num_keys; k++) {
            fetch(step, step->keys, t, k + 1, at * LANES, (at + 1) * LANES);
            const float *key = head + (num_queries + k) * size, *value = key + num_keys * size;
            float *keys = tile(step, step->keys, step->rows[t], k, at);
            for (int64_t i = 0; i < size; i++) keys[i * LANES + lane] = key[i];
            memcpy(tile(step, step->values, step->rows[t], k, at) + lane * size, value, size * sizeof(float));
        }
    }
}

/* Let a row begin with the first `length` keys and values of another. */
void share(const Step *step, int64_t source, int64_t destination, int64_t length) {
    int64_t size = step->size, whole = length / LANES, rest = length % LANES;
    for (int64_t k = 0; k < step->key_heads; k++) {
        size_t bytes = whole * LANES * size * sizeof(float);
        memcpy(tile(step, step->keys, destination, k, 0), tile(step, step->keys, source, k, 0), bytes);
        memcpy(tile(step, step->values, destination, k, 0), tile(step, step->values, source, k, 0),
               bytes + rest * size * sizeof(float));
        const float *from = tile(step, step->keys, source, k, whole);
        float *to = tile(step, step->keys, destination, k, whole);
        for (int64_t i = 0; rest && i < size; i++) memcpy(to + i * LANES, from + i * LANES, rest * sizeof(float));
    }
}

static lanes scores_of(const float *query, const float *keys, int64_t size) {
    lanes a = {0}, b = {0}, c = {0}, d = {0}; /* four sums: one would wait for itself */
    for (int64_t i = 0; i < size; i += 4) {
        const lanes *key = (const lanes *)(keys + i * LANES);
        a += query[i] * key[0];
        b += query[i + 1] * key[1];
        c += query[i + 2] * key[2];
        d += query[i + 3] * key[3];
    }
    return (a + b) + (c + d);
}

/* which of the keys from j on are seen: first <= key < last */
static inline flags seen(int64_t j, int64_t first, int64_t last) {
    const flags index = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return (index >= (int32_t)(first - j)) & (index < (int32_t)(last - j));
}

/* One query's weights over keys first <= j < last, which sum to 1; 0 for the others of their tiles. */
static void weigh(const float *query, const float *keys, float scale, int64_t first, int64_t last, int64_t size,
                  float *weights) {
    int64_t begin = first / LANES * LANES, end = (last + LANES - 1) / LANES * LANES;
    lanes top = (lanes){0} - INFINITY, total = {0};
    for (int64_t j = begin; j < end; j += LANES) {
        lanes scores = chosen(seen(j, first, last), scale * scores_of(query, keys + j * size, size), (lanes){0} - INFINITY);
        *(lanes *)(weights + j) = scores;
        top = chosen(scores > top, scores, top);
    }
    float most = highest(top);
    for (int64_t j = begin; j < end; j++) weights[j] = exponential(weights[j] - most);
    for (int64_t j = begin; j < end; j += LANES) {
        lanes part = chosen(seen(j, first, last), *(lanes *)(weights + j), (lanes){0});
        *(lanes *)(weights + j) = part;
        total += part;
    }
    float share = 1 / sum(total);
    for (int64_t j = begin; j < end; j += LANES) *(lanes *)(weights + j) *= share;
}

static void weighted(const float *weights, const float *values, int64_t begin, int64_t end, int64_t size,
                     float *restrict out) {
    for (int64_t i = 0; i < size; i += LANES) {
        lanes a = {0}, b = {0}, c = {0}, d = {0};
        for (int64_t j = begin; j < end; j += 4) {
            const float *value = values + j * size + i;
            a += weights[j] * *(const lanes *)value;
            b += weights[j + 1] * *(const lanes *)(value + size);
            c += weights[j + 2] * *(const lanes *)(value + 2 * size);
            d += weights[j + 3] * *(const lanes *)(value + 3 * size);
        }
        *(lanes *)(out + i) = (a + b) + (c + d);
    }
}

/* Every token sees its row up to itself, at most `window` tokens: out [T, H, D]. scratch [threads, tiles * LANES] */
void attend(const Step *step, float scale, int64_t window, float *out, float *scratch, int threads) {
    int64_t size = step->size, group = step->query_heads / step->key_heads, seen = 0;
    for (int64_t t = 0; t < step->tokens; t++) seen += step->positions[t] + 1;
#pragma omp parallel for num_threads(threads) if (seen * step->query_heads * size * 2 > MOST_WORK_OF_ONE_THREAD)
    for (int64_t t = 0; t < step->tokens; t++) {
#ifdef _OPENMP
        extern int omp_get_thread_num(void);
        float *scores = scratch + omp_get_thread_num() * step->tiles * LANES;
#else
        float *scores = scratch;
#endif
        int64_t last = step->positions[t] + 1, first = last > window ? last - window : 0;
        int64_t begin = first / LANES * LANES, end = (last + LANES - 1) / LANES * LANES;
        for (int64_t h = 0; h < step->query_heads; h++) {
            if (h % group == 0) fetch(step, step->keys, t, h / group + 1, begin, end);
            if (h % group == 0) fetch(step, step->values, t, h / group + 1, begin, end);
            const float *query = step->heads + (t * (step->query_heads + 2 * step->key_heads) + h) * size;
            weigh(query, tile(step, step->keys, step->rows[t], h / group, 0), scale, first, last, size, scores);
            weighted(scores, tile(step, step->values, step->rows[t], h / group, 0), begin, end, size,
                     out + (t * step->query_heads + h) * size);
        }
    }
}
