/* The whole step of a small model of the Llama family: tokens in, hidden states, drawn tokens and logprobs out.

   With few rows the calls between a step's parts take as long as the parts; here a call does one step, or several. */

#include "decode.c"
#include "products.h"

#ifdef TIMED /* for benchmarks, with one thread: nanoseconds within products, and within attention */
#include <time.h>
int64_t taken[2];
static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000 + time.tv_nsec;
}
#define PART(part, work)             \
    do {                             \
        int64_t began = now();       \
        work;                        \
        taken[part] += now() - began; \
    } while (0)
#else
#define PART(part, work) work
#endif
enum { PRODUCTS, ATTENTION };

enum { MOST_TOKENS_TOGETHER = 64 }; /* between whose products nothing leaves the second cache */

typedef struct {
    const float *before_attention, *before_feed_forward, *query_norm, *key_norm; /* the last two may be NULL */
    Linear query_key_value, output, gate_up, down;
    float *keys, *values;
    int64_t window;
    float scale;
} Layer;

typedef struct {
    int64_t layers, hidden, inner, query_heads, key_heads, size, vocabulary, capacity;
    const Layer *layer;
    const float *embedding, *norm, *cosine, *sine; /* [V, hidden], [hidden], [C, D / 2] */
    Linear head;
    float epsilon;
    int threads;
} Model;

typedef struct {
    int64_t count;
    const int64_t *tokens, *rows, *positions, *lenders, *shared; /* [T] */
    int64_t num_shares;
    const int64_t *shares; /* [.., 3]: source, destination, length */
} Work;

static int64_t heads_width(const Model *model) { return (model->query_heads + 2 * model->key_heads) * model->size; }

/* floats that one thread needs: state, what was seen, gate and up, the one gated by the other; weights over keys */
static int64_t own_room(const Model *model) {
    int64_t widths = model->hidden + model->query_heads * model->size + 3 * model->inner;
    return MOST_TOKENS_TOGETHER * widths + model->capacity + 2 * LANES;
}

/* floats of scratch that a step of so many tokens needs: the larger of forward pass and drawing */
int64_t room(const Model *model, int64_t tokens) {
    int64_t passing = tokens * (model->hidden + heads_width(model)) + model->threads * own_room(model);
    int64_t drawing = (tokens + 1) * model->vocabulary;
    return passing > drawing ? passing : drawing;
}

/* Tokens from `first` on, up to their queries, keys and values. */
static void before_attention(const Model *model, const Layer *layer, const Step *step, int64_t first, int64_t count,
                             const float *residual, float *state) {
    Step part = *step;
    part.tokens = count, part.rows += first, part.positions += first, part.heads += first * heads_width(model);
    add_norm(count, model->hidden, (float *)residual + first * model->hidden, 0, layer->before_attention, model->epsilon, state);
    PART(PRODUCTS, multiply(count, model->hidden, heads_width(model), state, layer->query_key_value, 0, part.heads));
    store(&part, model->cosine, model->sine, layer->query_norm, layer->key_norm, model->epsilon);
}

static void attend_tokens(const Step *step, int64_t first, int64_t count, float scale, int64_t window, float *out,
                          float *weights) {
    for (int64_t t = first; t < first + count; t++, out += step->query_heads * step->size)
        attend_token(step, t, scale, window, out, weights);
}

/* The rest of the layer, once all keys are stored. */
static void after_keys(const Model *model, const Layer *layer, const Step *step, int64_t first, int64_t count,
                       float *residual, float *state) {
    int64_t hidden = model->hidden, inner = model->inner, width = model->query_heads * model->size;
    float *seen = state + MOST_TOKENS_TOGETHER * hidden, *gate_up = seen + MOST_TOKENS_TOGETHER * width;
    float *gated = gate_up + MOST_TOKENS_TOGETHER * 2 * inner, *weights = gated + MOST_TOKENS_TOGETHER * inner;
    residual += first * hidden;
    PART(ATTENTION, attend_tokens(step, first, count, layer->scale, layer->window, seen, weights));
    PART(PRODUCTS, multiply(count, width, hidden, seen, layer->output, 1, residual));
    add_norm(count, hidden, residual, 0, layer->before_feed_forward, model->epsilon, state);
    PART(PRODUCTS, multiply(count, hidden, 2 * inner, state, layer->gate_up, 0, gate_up));
    swiglu(count, inner, gate_up, gated, 1);
    PART(PRODUCTS, multiply(count, inner, hidden, gated, layer->down, 1, residual));
}

/* How many tokens a thread takes at once; with few, one takes all of them: a layer has two parts, and waking another
   thread for each costs as much as it saves. */
static int64_t together(const Model *model, int64_t tokens) {
    int64_t each = model->hidden * (heads_width(model) + 3 * model->inner);
    int64_t threads = tokens * each > 2 * MOST_WORK_OF_ONE_THREAD ? model->threads : 1;
    int64_t share = (tokens + threads - 1) / threads;
    return share < MOST_TOKENS_TOGETHER ? share : MOST_TOKENS_TOGETHER;
}

/* Packed tokens -> out [T, hidden], normalised; their keys are in memory afterwards. scratch: see `room` */
void forward(const Model *model, const Work *work, float *out, float *scratch) {
    int64_t count = work->count, hidden = model->hidden, block = together(model, count), own = own_room(model);
    float *residual = scratch, *heads = residual + count * hidden, *mine = heads + count * heads_width(model);
    for (int64_t t = 0; t < count; t++)
        memcpy(residual + t * hidden, model->embedding + work->tokens[t] * hidden, hidden * sizeof(float));
    for (const Layer *layer = model->layer; layer < model->layer + model->layers; layer++) {
        Step step = {count, model->query_heads, model->key_heads, model->size, model->capacity, work->rows,
                     work->positions, heads, layer->keys, layer->values, work->lenders, work->shared};
#pragma omp parallel for num_threads(model->threads) if (block < count)
        for (int64_t t = 0; t < count; t += block)
            before_attention(model, layer, &step, t, count - t < block ? count - t : block, residual,
                             mine + thread_here() * own);
        for (int64_t i = 0; i < work->num_shares; i++)
            share(&step, work->shares[3 * i], work->shares[3 * i + 1], work->shares[3 * i + 2]);
#pragma omp parallel for num_threads(model->threads) if (block < count)
        for (int64_t t = 0; t < count; t += block)
            after_keys(model, layer, &step, t, count - t < block ? count - t : block, residual,
                       mine + thread_here() * own);
    }
    add_norm(count, hidden, residual, 0, model->norm, model->epsilon, out);
}

/* ---- drawing */

static uint64_t mixed(uint64_t bits) { /* as in random.py */
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

static double uniform(uint64_t key, int64_t position) {
    const uint64_t golden = 0x9E3779B97F4A7C15u;
    return (double)(mixed(mixed(key + golden) + ((uint64_t)position + 1) * golden) >> 11) * 0x1p-53;
}

/* The first token whose cumulated probability exceeds `point`; at temperature 0 the likeliest. `weights` [count] is
   scratch. Sums are of float64: with 150,000 tokens float32 loses the rare ones. */
static int64_t drawn(const float *scores, int64_t count, float temperature, double point, float *restrict weights,
                     float *logprob) {
    float most = -INFINITY, divisor = temperature == 0 ? 1 : temperature;
    for (int64_t i = 0; i < count; i++) weights[i] = scores[i] / divisor;
    for (int64_t i = 0; i < count; i++) most = weights[i] > most ? weights[i] : most;
    for (int64_t i = 0; i < count; i++) {
        float below = weights[i] - most;
        weights[i] = below < -87.0f ? 0 : exponential(below);
    }
    double total = 0, before = 0, target;
    for (int64_t i = 0; i < count; i++) total += weights[i];
    int64_t token = 0;
    if (temperature == 0) {
        while (token + 1 < count && scores[token] != most) token++;
        *logprob = isfinite(total) ? 0 : NAN;
        return token;
    }
    target = point * (1 - 0x1p-52) * total; /* below the total, so that some token exceeds it */
    for (; token + 1 < count; token++)
        if ((before += weights[token]) > target) break;
    *logprob = (float)((double)(scores[token] / divisor - most) - log(total));
    return token;
}

typedef struct {
    int64_t capacity, version, num_ends;
    const int64_t *ends;
    int64_t *tokens, *versions; /* [.., capacity] */
    float *logprobs;
    int64_t *length, *computed; /* one for each row, as are these: */
    const int64_t *limit;
    const uint64_t *key;
    const float *temperature;
} Table;

static int is_over(const Table *table, int64_t row) {
    int64_t length = table->length[row], last = table->tokens[row * table->capacity + length - 1];
    for (int64_t i = 0; i < table->num_ends; i++)
        if (table->ends[i] == last) return 1;
    return length >= table->limit[row];
}

/* One more token for each of these rows from hidden states [count, hidden]; how many have logits that are not finite.
   scratch: the scores, and as many weights */
int64_t append(const Model *model, const Table *table, int64_t count, const int64_t *rows, const float *hidden,
               float *scratch) {
    int64_t lost = 0, vocabulary = model->vocabulary;
    float *scores = scratch, *weights = scores + count * vocabulary;
    PART(PRODUCTS, multiply(count, model->hidden, vocabulary, hidden, model->head, 0, scores));
    for (int64_t i = 0; i < count; i++) {
        int64_t row = rows[i], length = table->length[row], place = row * table->capacity + length;
        double point = uniform(table->key[row], length);
        table->tokens[place] =
            drawn(scores + i * vocabulary, vocabulary, table->temperature[row], point, weights, table->logprobs + place);
        table->versions[place] = table->version;
        lost += !isfinite(table->logprobs[place]);
        table->length[row] = length + 1;
    }
    return lost;
}

/* Let rows that lack the keys of their last token alone write, until one of them ends, at most `steps` tokens each: how
   many it were. `lost`: as `append` tells. buffers [2, count]: tokens and positions */
int64_t write_rows(const Model *model, const Table *table, const Work *given, int64_t steps, int64_t *buffers,
                   float *hidden, float *scratch, int64_t *lost) {
    int64_t *tokens = buffers, *positions = buffers + given->count, done = 0;
    Work work = *given;
    work.tokens = tokens, work.positions = positions;
    for (int ends = 0; done < steps && !ends && !*lost; done++) {
        for (int64_t i = 0; i < work.count; i++) {
            int64_t row = work.rows[i];
            positions[i] = table->length[row] - 1;
            tokens[i] = table->tokens[row * table->capacity + positions[i]];
        }
        forward(model, &work, hidden, scratch);
        *lost = append(model, table, work.count, work.rows, hidden, scratch);
        for (int64_t i = 0; i < work.count; i++) {
            table->computed[work.rows[i]] = positions[i] + 1;
            ends |= is_over(table, work.rows[i]);
        }
    }
    return done;
}
