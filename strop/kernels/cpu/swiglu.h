/* silu(gate) * up of one row, and the way back. */

static inline void gated(int64_t width, const float *gate_up, float *restrict product) {
    const float *gate = gate_up, *up = gate_up + width;
    for (int64_t i = 0; i < width; i++) product[i] = gate[i] / (1 + exponential(-gate[i])) * up[i];
}

/* with s = sigmoid(g): d silu(g) / dg = s (1 + g (1 - s)); the product is made once more */
static inline void gated_back(int64_t width, const float *gate_up, const float *pull, float *restrict d_gate_up,
                              float *restrict product) {
    const float *gate = gate_up, *up = gate_up + width;
    float *restrict d_gate = d_gate_up, *restrict d_up = d_gate_up + width;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        float sigmoid = 1 / (1 + exponential(-gate[i])), opened = gate[i] * sigmoid;
        product[i] = opened * up[i];
        d_up[i] = pull[i] * opened;
        d_gate[i] = pull[i] * up[i] * (sigmoid + opened * (1 - sigmoid));
    }
}
