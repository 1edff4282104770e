// WQEs that a device refuses, and the syndromes.
#pragma once

#include <functional>
#include <vector>

#include "tests/unit/transports/mlx5/emulated_hca_world.h"

namespace shmemctl::test {

struct Malformed {
  const char* name;
  std::function<void(EmulatedWorld&, EntryWords&)> make;
  Syndrome syndrome;
  EmulatedFault cause;
};

inline EntryWords good_write(EmulatedWorld& world) {
  EntryWords entry;
  build_write(entry, world.raw.head(0), world.remote(0), world.local(0, 8));
  return entry;
}
inline void set_control(EmulatedWorld& world, EntryWords& entry, Opcode opcode,
                        std::uint8_t modifier, std::uint32_t ds_count) {
  entry.set(
      0, control_word(opcode, modifier, world.raw.position(), world.queue->view().qpn, ds_count));
}

inline std::vector<Malformed> malformed_entries() {
  using Entry = EntryWords;
  using World = EmulatedWorld;
  const auto write_of = [](std::function<DataSegment(World&)> local,
                           std::function<RaddrSegment(World&)> remote) {
    return [=](World& world, Entry& entry) {
      build_write(entry, world.raw.head(0), remote(world), local(world));
    };
  };
  const auto read_of = [](std::function<DataSegment(World&)> local,
                          std::function<RaddrSegment(World&)> remote) {
    return [=](World& world, Entry& entry) {
      build_read(entry, world.raw.head(0), remote(world), local(world));
    };
  };
  const auto atomic_of = [](AtomicFields fields, std::uint32_t local_bytes,
                            std::function<RaddrSegment(World&)> remote) {
    return [=](World& world, Entry& entry) {
      build_atomic(entry, world.raw.head(0), remote(world), fields, world.local(0, local_bytes));
    };
  };
  const auto here = [](World& world) { return world.local(0, 8); };
  const auto there = [](World& world) { return world.remote(0); };
  const auto with_key = [](std::uint32_t key) {
    return [key](World& world) { return RaddrSegment{world.remote(0).address, key}; };
  };
  return {
      {"an index of another place",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         entry.set(0, control_word(Opcode::rdma_write, 0, world.raw.position() + 16,
                                   world.queue->view().qpn, 3));
       },
       Syndrome::local_operation, EmulatedFault::wrong_index},
      {"another queue's number",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         entry.set(0, control_word(Opcode::rdma_write, 0, world.raw.position(),
                                   world.queue->view().qpn ^ 1, 3));
       },
       Syndrome::local_operation, EmulatedFault::wrong_queue},
      {"zeros",
       [](World&, Entry& entry) {
         for (unsigned i = 0; i < 8; ++i)
           entry.set(i, 0);
       },
       Syndrome::local_operation, EmulatedFault::wrong_queue},
      {"a size of 0",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, Opcode::rdma_write, 0, 0);
       },
       Syndrome::local_operation, EmulatedFault::bad_size},
      {"an unknown operation",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, static_cast<Opcode>(0x0a), 0, 3);
       },
       Syndrome::local_operation, EmulatedFault::unknown_opcode},
      {"a WRITE without an address",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, Opcode::rdma_write, 0, 1);
       },
       Syndrome::local_operation, EmulatedFault::bad_size},
      {"more wqebbs than the record tells of",
       [](World& world, Entry& entry) {
         entry = good_write(world);
         set_control(world, entry, Opcode::rdma_write, 0, 63);
       },
       Syndrome::local_operation, EmulatedFault::behind_producer},
      {"an atomic without a result",
       [](World& world, Entry& entry) {
         build_atomic(entry, world.raw.head(0), world.remote(0), atomic_add(8, 1),
                      world.local(0, 8));
         set_control(world, entry, Opcode::atomic_fa, 0, 3);
       },
       Syndrome::local_operation, EmulatedFault::bad_size},
      {"an atomic with a modifier that it must not have",
       [](World& world, Entry& entry) {
         build_atomic(entry, world.raw.head(0), world.remote(0), atomic_add(8, 1),
                      world.local(0, 8));
         set_control(world, entry, Opcode::atomic_fa, 9, 4);
       },
       Syndrome::local_operation, EmulatedFault::bad_modifier},
      {"a masked atomic of 16 bytes",
       [](World& world, Entry& entry) {
         build_atomic(entry, world.raw.head(0), world.remote(0), atomic_xor(8, 1),
                      world.local(0, 8));
         set_control(world, entry, Opcode::atomic_masked_fa, 10, 4);
       },
       Syndrome::local_operation, EmulatedFault::bad_modifier},
      {"inline data that is longer than its entry",
       [](World& world, Entry& entry) {
         build_value_write(entry, world.raw.head(0), world.remote(0), 1, 8);
         entry.set(4, to_wire(std::uint64_t{inline_bit | 13} << 32));
       },
       Syndrome::local_operation, EmulatedFault::bad_inline},
      {"inline data of 2 GiB",
       [](World& world, Entry& entry) {
         build_value_write(entry, world.raw.head(0), world.remote(0), 1, 8);
         entry.set(4, ~0ull);
       },
       Syndrome::local_operation, EmulatedFault::bad_inline},
      {"a READ into the entry",
       [](World& world, Entry& entry) {
         build_value_write(entry, world.raw.head(0), world.remote(0), 1, 8);
         set_control(world, entry, Opcode::rdma_read, 0, 3);
       },
       Syndrome::local_operation, EmulatedFault::bad_inline},
      {"a piece of 0 bytes, which is 2 GiB",
       write_of([](World& world) { return world.local(0, 0); }, there), Syndrome::local_length,
       EmulatedFault::message_too_long},
      {"one byte over 1 GiB",
       write_of([](World& world) { return world.local(0, (1u << 30) + 1); }, there),
       Syndrome::local_length, EmulatedFault::message_too_long},
      {"an atomic with a result of another size", atomic_of(atomic_add(8, 1), 4, there),
       Syndrome::local_length, EmulatedFault::bad_result_piece},
      {"a local key of nobody",
       write_of(
           [](World& world) {
             return DataSegment{world.local(0, 8).address, 0x99900, 8};
           },
           there),
       Syndrome::local_protection, EmulatedFault::unknown_lkey},
      {"the device's invalid key",
       write_of(
           [](World& world) {
             return DataSegment{world.local(0, 8).address, 0x100, 8};
           },
           there),
       Syndrome::local_protection, EmulatedFault::unknown_lkey},
      {"before the local memory",
       write_of(
           [](World& world) {
             return DataSegment{world.local(0, 8).address - 1, world.memory->lkey(), 8};
           },
           there),
       Syndrome::local_protection, EmulatedFault::lkey_bounds},
      {"over the end of the local memory",
       read_of([](World& world) { return world.local(EmulatedWorld::size_bytes - 7, 8); }, there),
       Syndrome::local_protection, EmulatedFault::lkey_bounds},
      {"a local address that wraps around",
       write_of(
           [](World& world) {
             return DataSegment{~0ull - 3, world.memory->lkey(), 8};
           },
           there),
       Syndrome::local_protection, EmulatedFault::lkey_bounds},
      {"a remote key of nobody", write_of(here, with_key(0x123456)), Syndrome::remote_access,
       EmulatedFault::unknown_rkey},
      {"before the remote memory",
       write_of(here,
                [](World& world) {
                  return RaddrSegment{world.remote(0).address - 1, EmulatedWorld::rkey};
                }),
       Syndrome::remote_access, EmulatedFault::rkey_bounds},
      {"over the end of the remote memory",
       read_of(here, [](World& world) { return world.remote(EmulatedWorld::size_bytes - 7); }),
       Syndrome::remote_access, EmulatedFault::rkey_bounds},
      {"a remote address that wraps around",
       write_of(here,
                [](World&) {
                  return RaddrSegment{~0ull - 3, EmulatedWorld::rkey};
                }),
       Syndrome::remote_access, EmulatedFault::rkey_bounds},
      {"a WRITE where only READs are allowed",
       write_of(here, with_key(EmulatedWorld::rkey_read_only)), Syndrome::remote_access,
       EmulatedFault::rkey_access},
      {"a READ where only WRITEs are allowed",
       read_of(here, with_key(EmulatedWorld::rkey_write_only)), Syndrome::remote_access,
       EmulatedFault::rkey_access},
      {"an atomic where only WRITEs are allowed",
       atomic_of(atomic_add(8, 1), 8, with_key(EmulatedWorld::rkey_write_only)),
       Syndrome::remote_access, EmulatedFault::rkey_access},
      {"an atomic over the end",
       atomic_of(atomic_add(8, 1), 8,
                 [](World& world) { return world.remote(EmulatedWorld::size_bytes); }),
       Syndrome::remote_access, EmulatedFault::rkey_bounds},
      {"an atomic of 8 bytes at 4",
       atomic_of(atomic_add(8, 1), 8, [](World& world) { return world.remote(4); }),
       Syndrome::remote_invalid_request, EmulatedFault::misaligned},
      {"an atomic of 4 bytes at 2",
       atomic_of(atomic_swap(4, 1), 4, [](World& world) { return world.remote(2); }),
       Syndrome::remote_invalid_request, EmulatedFault::misaligned},
  };
}

} // namespace shmemctl::test
