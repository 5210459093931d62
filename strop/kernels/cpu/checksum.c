/* One number for the bits of a matrix of 4-byte elements, in one pass; `strop/weights/fingerprint.py` says what for. */

#include <stdint.h>

static uint64_t odd(int64_t place) { return (uint64_t)place * (2 * 0x9E3779B1ull) + 1; }

/* sum of bits times odd numbers: at 2^32 along a row, and of rows at 2^64; factors [columns] are those of a row */
int64_t checksum(int64_t rows, int64_t columns, const uint32_t *bits, const uint32_t *factors) {
    uint64_t total = 0;
    for (int64_t i = 0; i < rows; i++) {
        const uint32_t *row = bits + i * columns;
        uint32_t sum = 0;
        for (int64_t j = 0; j < columns; j++) sum += row[j] * factors[j];
        total += (uint64_t)(int64_t)(int32_t)sum * odd(i);
    }
    return (int64_t)total;
}
