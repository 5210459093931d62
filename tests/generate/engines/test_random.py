"""Counter-based random numbers: known values, uniform, independent over keys and positions."""

import numpy as np

from strop.kernels.sampling.counter_random import as_key, uniforms

MASK = (1 << 64) - 1


def mixed(bits: int) -> int:
    """SplitMix64's output function in plain integers."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & MASK
    return bits ^ (bits >> 31)


def test_the_mixing_gives_the_published_sequence_of_seed_0() -> None:
    # the first output of SplitMix64 seeded with 0
    assert mixed(0x9E3779B97F4A7C15) == 0xE220A8397B1DCDAF


def test_arrays_agree_with_plain_integers() -> None:
    golden = 0x9E3779B97F4A7C15
    keys = [0, 1, 2**63, MASK]
    positions = [0, 1, 77, 10**6]
    for key in keys:
        for position in positions:
            stream = mixed((key + golden) & MASK)
            want = (mixed((stream + (position + 1) * golden) & MASK) >> 11) * 2.0**-53
            assert uniforms(np.array([as_key(key)]), np.array([position]))[0] == want


def test_numbers_are_uniform_and_below_one() -> None:
    keys = np.repeat(np.arange(500, dtype=np.uint64), 200)
    numbers = uniforms(keys, np.tile(np.arange(200), 500))
    counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
    expected = len(numbers) / 50
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert numbers.min() >= 0 and numbers.max() < 1
    assert 20 < chi_square < 95  # 49 degrees of freedom: both tails below 0.0002


def test_neighbouring_keys_and_positions_are_uncorrelated() -> None:
    keys, positions = np.meshgrid(np.arange(300, dtype=np.uint64), np.arange(300), indexing="ij")
    numbers = uniforms(keys.ravel(), positions.ravel()).reshape(300, 300)
    for one, other in ((numbers[1:], numbers[:-1]), (numbers[:, 1:], numbers[:, :-1]), (numbers, numbers.T)):
        upper = np.triu_indices(one.shape[0], 1, one.shape[1]) if one.shape[0] == one.shape[1] else ...
        correlation = np.corrcoef(one[upper].ravel(), other[upper].ravel())[0, 1]
        assert abs(correlation) < 0.02  # five standard errors of 1 / sqrt(45,000) at least


def test_a_key_of_any_size_is_cut_to_64_bits() -> None:
    assert as_key(-1) == as_key(MASK) == as_key(MASK + (1 << 80))
