// Philox4x32-10, a random generator without a state: a function of a counter and a key (Salmon et al. 2011,
// "Parallel random numbers: as easy as 1, 2, 3"). Plain C++, for the CPU and for CUDA.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define MNMT_MOE_HOST_DEVICE __host__ __device__
#else
#define MNMT_MOE_HOST_DEVICE
#endif

namespace mnmt_moe {

struct PhiloxCounter {
    uint32_t words[4];
};

struct PhiloxKey {
    uint32_t words[2];
};

MNMT_MOE_HOST_DEVICE inline PhiloxCounter philox_round(PhiloxCounter counter, PhiloxKey key) {
    const uint64_t first = uint64_t{0xD2511F53} * counter.words[0];
    const uint64_t second = uint64_t{0xCD9E8D57} * counter.words[2];
    const auto high = [](uint64_t product) { return static_cast<uint32_t>(product >> 32); };
    return {{high(second) ^ counter.words[1] ^ key.words[0], static_cast<uint32_t>(second),
             high(first) ^ counter.words[3] ^ key.words[1], static_cast<uint32_t>(first)}};
}

MNMT_MOE_HOST_DEVICE inline PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) {
    for (int round = 0; round < 10; ++round) {
        counter = philox_round(counter, key);
        key.words[0] += 0x9E3779B9;
        key.words[1] += 0xBB67AE85;
    }
    return counter;
}

// The draw of a token at a step of a layer's gate, uniform in [0, 1), with 53 random bits.
MNMT_MOE_HOST_DEVICE inline double uniform_draw(int64_t seed, int64_t step, int64_t layer, int64_t token_id) {
    const auto low = [](int64_t number) { return static_cast<uint32_t>(static_cast<uint64_t>(number)); };
    const auto high = [](int64_t number) {
        return static_cast<uint32_t>(static_cast<uint64_t>(number) >> 32);
    };
    const PhiloxCounter counter{{low(token_id), high(token_id), low(step), low(layer)}};
    const PhiloxCounter random = philox4x32(counter, {{low(seed), high(seed)}});
    const double bits = static_cast<double>(random.words[0] >> 5) * 67108864.0 + (random.words[1] >> 6);
    return bits * 0x1p-53;
}

}  // namespace mnmt_moe
