/* Products of a few rows with weights that lie in panels: [columns / PANEL, depth, PANEL], padded with zeros.

   Every number is one sum over `depth` in ascending order, whichever tile it is computed in: it depends neither on how
   many rows there are, nor on their order, nor on the number of threads. A panel is read once for all rows, from front to
   back, and its sums never leave the registers. */

enum { PANEL = 2 * LANES };

#ifdef __AVX512F__
enum { TALL = 8, WIDE = 2 }; /* 16 of 32 registers hold sums; more rows at once are no quicker, and divide fewer numbers */
#else
enum { TALL = 6, WIDE = 2 }; /* 12 of 16 */
#endif

typedef struct {
    const float *panels, *bias; /* bias [columns], or NULL */
} Linear;

static int64_t num_panels(int64_t columns) { return (columns + PANEL - 1) / PANEL; }

/* One panel of `count` columns; `count` and one of the strides are known where this is compiled in. */
static inline __attribute__((always_inline)) void pack_panel(int64_t depth, int64_t count, const float *weight, int64_t row,
                                                             int64_t column, float *restrict panel) {
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < PANEL; j++) panel[k * PANEL + j] = j < count ? weight[k * row + j * column] : 0;
}

/* weight [depth, columns] with these strides -> panels */
void pack(int64_t depth, int64_t columns, const float *weight, int64_t row, int64_t column, float *restrict panels,
          int threads) {
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t p = 0; p < num_panels(columns); p++) {
        const float *from = weight + p * PANEL * column;
        float *to = panels + p * depth * PANEL;
        if ((p + 1) * PANEL > columns) pack_panel(depth, columns - p * PANEL, from, row, column, to);
        else if (column == 1) pack_panel(depth, PANEL, from, row, 1, to);
        else pack_panel(depth, PANEL, from, row, column, to);
    }
}

/* What becomes of a tile's sums: a bias is added to them, and they to what is there. */
static inline void put(lanes sums, const float *bias, int adds, float *to, int64_t count) {
    if (count >= LANES) {
        if (bias) sums += *(const lanes *)bias;
        *(lanes *)to = adds ? *(lanes *)to + sums : sums;
    } else {
        for (int64_t j = 0; j < count; j++) {
            float sum = bias ? sums[j] + bias[j] : sums[j];
            to[j] = adds ? to[j] + sum : sum;
        }
    }
}

/* WIDE vectors of `rows` rows; `rows` and one of the strides are known where this is compiled in */
static inline __attribute__((always_inline)) void tile(int rows, int64_t depth, const float *from, int64_t row,
                                                       int64_t column, const float *panel, lanes sums[TALL][WIDE]) {
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < WIDE; v++) sums[i][v] = (lanes){0};
    for (int64_t k = 0; k < depth; k++) {
        lanes weights[WIDE];
        for (int v = 0; v < WIDE; v++) weights[v] = *(const lanes *)(panel + k * PANEL + v * LANES);
        for (int i = 0; i < rows; i++)
            for (int v = 0; v < WIDE; v++) sums[i][v] += from[i * row + k * column] * weights[v];
    }
}

/* to [rows, columns] = from [rows, depth] times the weights, or `adds` them */
static void multiply(int64_t rows, int64_t depth, int64_t columns, const float *from, Linear linear, int adds, float *to) {
    for (int64_t p = 0; p < columns; p += WIDE * LANES) {
        const float *panel = linear.panels + p / PANEL * depth * PANEL + p % PANEL;
        for (int64_t i = 0; i < rows;) {
            lanes sums[TALL][WIDE];
            const float *first = from + i * depth;
            int64_t count = rows - i >= TALL ? TALL : rows - i >= 4 ? 4 : rows - i >= 2 ? 2 : 1;
            if (count == TALL) tile(TALL, depth, first, depth, 1, panel, sums);
            else if (count == 4) tile(4, depth, first, depth, 1, panel, sums);
            else if (count == 2) tile(2, depth, first, depth, 1, panel, sums);
            else tile(1, depth, first, depth, 1, panel, sums);
            for (int64_t r = 0; r < count; r++)
                for (int v = 0; v < WIDE; v++) {
                    int64_t j = p + v * LANES;
                    if (j < columns)
                        put(sums[r][v], linear.bias ? linear.bias + j : 0, adds, to + (i + r) * columns + j, columns - j);
                }
            i += count;
        }
    }
}
