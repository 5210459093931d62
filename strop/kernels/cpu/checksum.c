/* One number for the bits of a matrix of 4-byte elements, in one pass; `strop/weights/fingerprint.py` says what for. */

#include <stdint.h>

enum { TOGETHER = 64 }; /* rows that are summed side by side where neighbours in memory are rows */

static uint64_t odd(int64_t place) { return (uint64_t)place * (2 * 0x9E3779B1ull) + 1; }

static uint64_t along(int64_t columns, const uint32_t *bits) {
    uint32_t sum = 0;
    for (int64_t j = 0; j < columns; j++) sum += bits[j] * ((uint32_t)j * (uint32_t)(2 * 0x9E3779B1ull) + 1);
    return (uint64_t)(int64_t)(int32_t)sum;
}

static uint64_t across(int64_t first, int64_t count, int64_t columns, const uint32_t *bits, int64_t step) {
    uint32_t sums[TOGETHER] = {0};
    uint64_t total = 0;
    for (int64_t j = 0; j < columns; j++)
        for (int64_t i = 0; i < count; i++) sums[i] += bits[j * step + i] * (uint32_t)odd(j);
    for (int64_t i = 0; i < count; i++) total += (uint64_t)(int64_t)(int32_t)sums[i] * odd(first + i);
    return total;
}

/* sum of bits times odd numbers: at 2^32 along a row, and of rows at 2^64; `row` and `column` are strides, one is 1 */
int64_t checksum(int64_t rows, int64_t columns, const uint32_t *bits, int64_t row, int64_t column, int threads) {
    uint64_t total = 0;
    if (column == 1) {
#pragma omp parallel for num_threads(threads) reduction(+ : total) if (threads > 1)
        for (int64_t i = 0; i < rows; i++) total += along(columns, bits + i * row) * odd(i);
    } else {
#pragma omp parallel for num_threads(threads) reduction(+ : total) if (threads > 1)
        for (int64_t i = 0; i < rows; i += TOGETHER) {
            if (rows - i >= TOGETHER) total += across(i, TOGETHER, columns, bits + i, column);
            else total += across(i, rows - i, columns, bits + i, column);
        }
    }
    return (int64_t)total;
}
