// Every operation through the proxy: what arrives.
#include <array>

#include "tests/unit/runtime/proxy/network/network.h"

namespace shmemctl::test {
namespace {

/// Around the limits that transports have: words, inline and inject sizes, buffers, packets.
constexpr std::array<std::size_t, 10> sizes = {0,    1,     8,     64,     129,
                                               4095, 16385, 65536, 300000, (1 << 20) + 7};

TEST_P(ProxyNetwork, PutsAndGets) {
  run(3, [](ProxyPe& me) {
    ProxyProducer producer(me.proxy->channel(), proxy_context);
    std::vector<std::byte> data(sizes.back()), back(sizes.back());
    const std::size_t mine = 64 + static_cast<std::size_t>(me.pe) * (sizes.back() + 1);
    std::uint64_t seed = static_cast<std::uint64_t>(me.pe);
    for (const std::size_t size_bytes : sizes)
      for (const bool blocking : {true, false})
        for (int to = 0; to < me.n_pes; ++to) {
          fill(data.data(), size_bytes, ++seed);
          producer.put(me.at(to, mine), data.data(), size_bytes, blocking);
          producer.quiet();
          std::memset(back.data(), 0, size_bytes);
          producer.get(back.data(), me.at(to, mine), size_bytes, blocking);
          if (!blocking)
            producer.quiet();
          require_filled(back.data(), size_bytes, seed, "put and get");
        }
    me.barrier();
    // From and to registered memory, seen by the target itself.
    fill(me.heap + 3 * (sizes.back() + 100), 70000, 9 + static_cast<std::uint64_t>(me.pe));
    const int to = (me.pe + 1) % me.n_pes, from = (me.pe + me.n_pes - 1) % me.n_pes;
    producer.put(me.at(to, 64), me.heap + 3 * (sizes.back() + 100), 70000);
    producer.quiet();
    me.barrier();
    require_filled(me.heap + 64, 70000, 9 + static_cast<std::uint64_t>(from), "put from the heap");
  });
}

TEST_P(ProxyNetwork, Values) {
  run(2, [](ProxyPe& me) {
    ProxyProducer producer(me.proxy->channel(), proxy_context);
    constexpr std::uint64_t value = 0x8182838485868788;
    std::size_t at = 64;
    for (const int to : {1 - me.pe, me.pe})
      for (const unsigned size_bytes : {1u, 2u, 4u, 8u}) {
        const RemoteAddress target = me.at(to, at += 8);
        producer.put_value(target, value, size_bytes);
        producer.quiet();
        require(producer.get_value(target, size_bytes) == (value & low_bits(8 * size_bytes)),
                "value of " + std::to_string(size_bytes) + " bytes");
        require(producer.get_value(me.at(to, at), 8) == (value & low_bits(8 * size_bytes)),
                "what is beside it");
      }
  });
}

TEST_P(ProxyNetwork, Atomics) {
  run(2, [](ProxyPe& me) {
    ProxyProducer producer(me.proxy->channel(), proxy_context);
    for (const std::uint8_t size : {std::uint8_t{8}, std::uint8_t{4}})
      for (const int to : {1 - me.pe, me.pe}) {
        const RemoteAddress word = me.at(to, 64 + 32 * static_cast<std::size_t>(me.pe) + size +
                                                 (to == me.pe ? 1024 : std::size_t{0}));
        const auto expect = [&](const AtomicRequest& request, std::uint64_t old) {
          const std::uint64_t found = producer.atomic(word, request);
          require(found == old, "atomic " + std::to_string(static_cast<int>(request.op)) + " of " +
                                    std::to_string(size) + " bytes: " + std::to_string(found) +
                                    ", not " + std::to_string(old));
        };
        producer.post_atomic(word, {AtomicOp::set, size, 100});
        producer.quiet();
        expect({AtomicOp::add, size, low_bits(8 * size)}, 100);
        expect({AtomicOp::fetch, size}, 99);
        expect({AtomicOp::swap, size, 0xff00ff00}, 99);
        expect({AtomicOp::compare_swap, size, 12, 0xff00ff00}, 0xff00ff00);
        expect({AtomicOp::compare_swap, size, 13, 11}, 12);
        expect({AtomicOp::bit_or, size, 3}, 12);
        expect({AtomicOp::bit_and, size, 6}, 15);
        expect({AtomicOp::bit_xor, size, 1}, 6);
        producer.post_atomic(word, {AtomicOp::add, size, 5});
        producer.quiet();
        expect({AtomicOp::fetch, size}, 12);
      }
  });
}

TEST_P(ProxyNetwork, AtomicsOfManyProducersAddUp) {
  run(3, [](ProxyPe& me) {
    constexpr int n_threads = 3, each = 60;
    in_threads(n_threads, [&](int) {
      ProxyProducer producer(me.proxy->channel(), proxy_context);
      for (int i = 0; i < each; ++i)
        for (int to = 0; to < me.n_pes; ++to) {
          if (i % 4 == 0)
            producer.atomic(me.at(to, 64), {AtomicOp::add, 8, 1});
          else
            producer.post_atomic(me.at(to, 64), {AtomicOp::add, 8, 1});
        }
      producer.quiet();
    });
    me.barrier();
    ProxyProducer producer(me.proxy->channel(), proxy_context);
    for (int to = 0; to < me.n_pes; ++to)
      require(producer.get_value(me.at(to, 64), 8) == n_threads * each * 3u,
              "the sum on PE " + std::to_string(to));
  });
}

TEST_P(ProxyNetwork, GetsOfManyProducers) {
  run(3, [](ProxyPe& me) {
    constexpr int n_threads = 4, each = 50;
    for (std::size_t i = 0; i < 1000; ++i)
      reinterpret_cast<std::uint64_t*>(me.heap)[i] = static_cast<std::uint64_t>(me.pe) * 1000 + i;
    me.barrier();
    in_threads(n_threads, [&](int thread) {
      ProxyProducer producer(me.proxy->channel(), proxy_context);
      std::array<std::uint64_t, 16> some{};
      for (int i = 0; i < each; ++i) {
        const int from = (thread + i) % me.n_pes;
        const auto index = static_cast<std::size_t>(thread * 100 + i);
        const std::uint64_t first = static_cast<std::uint64_t>(from) * 1000 + index;
        require(producer.get_value(me.at(from, index * 8), 8) == first, "value");
        producer.get(some.data(), me.at(from, index * 8), sizeof some);
        for (std::size_t word = 0; word < some.size(); ++word)
          require(some[word] == first + word, "word " + std::to_string(word));
      }
    });
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
