/* What a training step computes between its matrix products, forward and backward, in float32 on a CPU: one pass each.

   Rows are summed in a fixed order and threads never add to the same number, so that what comes out does not depend on
   how many there are. */

#include "vectors.h"
#include "swiglu.h"

enum { BLOCK = 64 }; /* rows that one partial sum spans */

static float dot(const float *one, const float *other, int64_t count) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < count; i++) total += one[i] * other[i];
    return total;
}

#include "attention.h"

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
    for (int64_t t = 0; t < rows; t++) gated(width, gate_up + t * 2 * width, product + t * width);
}

/* the gradient of gate_up, and the product once more */
void swiglu_backward(int64_t rows, int64_t width, const float *gate_up, const float *d_product,
                     float *restrict d_gate_up, float *restrict product, int threads) {
#pragma omp parallel for num_threads(threads)
    for (int64_t t = 0; t < rows; t++)
        gated_back(width, gate_up + t * 2 * width, d_product + t * width, d_gate_up + t * 2 * width, product + t * width);
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
