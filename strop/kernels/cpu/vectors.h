/* Vectors of floats, and what both sources do with them. */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Floats of a vector: those of one register. A compiler keeps wider ones in memory. */
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t flags __attribute__((vector_size(4 * LANES), aligned(4)));

static inline int thread_here(void) {
#ifdef _OPENMP
    extern int omp_get_thread_num(void);
    return omp_get_thread_num();
#else
    return 0;
#endif
}

static inline lanes chosen(flags is_first, lanes first, lanes second) {
    return (lanes)((is_first & (flags)first) | (~is_first & (flags)second));
}

static inline lanes higher(lanes one, lanes other) { return chosen(one > other, one, other); }

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
