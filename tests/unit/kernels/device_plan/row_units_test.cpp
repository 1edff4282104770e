// Rows as units that carry data and flag together: every word has a place of its own, and threads
// with neighbouring groups have neighbouring pairs.
#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <utility>

#include "kernels/moe/low_latency.h"

namespace shmemctl::test {
namespace {

using namespace moe;

Shape shape_of_units(std::int32_t ranks, std::int32_t hidden, std::int32_t top_k,
                     std::int32_t tokens) {
  Shape shape;
  shape.n_ranks = ranks;
  shape.n_experts = 8 * ranks;
  shape.hidden = hidden;
  shape.top_k = top_k;
  shape.max_tokens = tokens;
  return shape;
}

TEST(RowUnits, EveryWordOfARowHasAUnitOfItsOwn) {
  for (const Scales scales : {Scales::none, Scales::float32, Scales::power, Scales::ue8m0})
    for (const std::int32_t hidden : {128, 2176, 7168})
      for (const std::int32_t top_k : {1, 5, 8, 16}) {
        const Shape shape = shape_of_units(4, hidden, top_k, 16);
        const UnitLayout layout(shape, scales);
        const std::int32_t record_words = MetadataLayout(shape, scales).words();
        ASSERT_EQ(layout.value_groups * 16, shape.value_bytes(format_of(scales)));
        ASSERT_EQ(layout.record_groups * 4, record_words);
        std::set<std::int32_t> units;
        for (std::int32_t group = 0; group < layout.value_groups; ++group)
          for (std::int32_t which = 0; which < 2; ++which) {
            units.insert(layout.pair(group, which));
            units.insert(layout.pair(group, which) + 1);
          }
        for (std::int32_t word = 0; word < record_words; ++word)
          units.insert(layout.unit_of_record(word));
        ASSERT_EQ(static_cast<std::int32_t>(units.size()), layout.units()) << "none twice";
        EXPECT_EQ(*units.begin(), 0);
        EXPECT_EQ(*units.rbegin(), layout.units() - 1) << "and no gaps";
      }
}

/// What a receiver loads of a record's group is what single words were stored to.
TEST(RowUnits, WordsOfARecordAreThoseOfItsGroups) {
  const UnitLayout layout(shape_of_units(2, 7168, 8, 16), Scales::float32);
  for (std::int32_t group = 0; group < layout.record_groups; ++group) {
    const std::int32_t whole = layout.value_groups + group;
    EXPECT_EQ(layout.unit_of_record(4 * group), layout.pair(whole, 0));
    EXPECT_EQ(layout.unit_of_record(4 * group + 1), layout.pair(whole, 0) + 1);
    EXPECT_EQ(layout.unit_of_record(4 * group + 2), layout.pair(whole, 1));
    EXPECT_EQ(layout.unit_of_record(4 * group + 3), layout.pair(whole, 1) + 1);
  }
}

TEST(RowUnits, NeighboursAreBesideEachOtherAndAligned) {
  const Shape shape = shape_of_units(3, 2176, 5, 7);
  const UnitLayout layout(shape, Scales::ue8m0);
  for (std::int32_t which = 0; which < 2; ++which)
    for (std::int32_t group = 0; group + 1 < layout.groups; ++group)
      EXPECT_EQ(layout.pair(group + 1, which) - layout.pair(group, which), 2);
  EXPECT_EQ(layout.row_bytes() % 16, 0);
  EXPECT_EQ(layout.row_bytes(), 2 * (shape.hidden + MetadataLayout(shape, Scales::ue8m0).bytes()))
      << "twice the bytes";
}

TEST(RowUnits, RowsOfAllSourcesAndBothBuffersAreApart) {
  const Shape shape = shape_of_units(3, 256, 2, 5);
  const UnitLayout layout(shape, Scales::none);
  std::int64_t next = 0;
  for (std::int32_t buffer = 0; buffer < 2; ++buffer)
    for (std::int32_t source = 0; source < shape.n_ranks; ++source)
      for (std::int32_t slot = 0; slot < shape.max_tokens; ++slot) {
        EXPECT_EQ(layout.offset(shape, buffer, source, slot), next);
        next += layout.row_bytes();
      }
  EXPECT_EQ(layout.all_bytes(shape), next);
}

TEST(RowUnits, AUnitSaysWhoseDispatchItIs) {
  for (const std::uint32_t data : {0u, 1u, 0x7fc0ffeeu, 0xffffffffu})
    for (const std::uint64_t epoch :
         {std::uint64_t{1}, std::uint64_t{0xffffffff}, (std::uint64_t{1} << 32) + 2}) {
      const std::uint64_t unit = count_word(epoch, static_cast<std::int32_t>(data));
      EXPECT_TRUE(has_come(unit, epoch));
      EXPECT_FALSE(has_come(unit, epoch + 1));
      EXPECT_FALSE(has_come(unit, epoch + 2));
      EXPECT_EQ(static_cast<std::uint32_t>(count_of(unit)), data);
    }
  EXPECT_FALSE(has_come(0, 1)) << "memory that was never written";
}

TEST(RowUnits, EachSlotHasOneReceiverAndEachSourceOneThatCounts) {
  for (const int sms : {2, 3, 7, 40, 132})
    for (const std::int32_t tokens : {0, 1, 16})
      for (const Phases phases : {Phases::both, Phases::send, Phases::receive}) {
        const Shape shape = shape_of_units(8, 256, 2, 16);
        const DispatchBlocks blocks = dispatch_blocks_by_units(shape, tokens, sms, phases);
        ASSERT_LE(blocks.all(), sms);
        ASSERT_EQ(blocks.senders > 0, phases != Phases::receive);
        ASSERT_EQ(blocks.receiving > 0, phases != Phases::send);
        if (phases == Phases::send)
          continue;
        std::set<std::pair<std::int32_t, std::int32_t>> slots;
        for (int block = 0; block < blocks.receiving; ++block)
          for (std::int32_t item = block; item < expected_slots(shape); item += blocks.receiving) {
            const ExpectedSlot expected = expected_slot(shape, item);
            EXPECT_TRUE(expected.source >= 0 && expected.source < shape.n_ranks);
            EXPECT_TRUE(expected.slot >= 0 && expected.slot < shape.max_tokens);
            slots.insert({expected.source, expected.slot});
          }
        EXPECT_EQ(static_cast<std::int32_t>(slots.size()), shape.n_ranks * shape.max_tokens);
      }
  for (const std::int32_t rows : {-1, 0, 1, 5, 16}) {
    int counting = 0;
    for (std::int32_t slot = 0; slot < 16; ++slot)
      counting += slot == slot_that_counts(rows) ? 1 : 0;
    EXPECT_EQ(counting, 1) << rows;
  }
}

TEST(RowUnits, RowsThatComeBackAreApartAndOfTheirToken) {
  for (const bool weighted : {false, true}) {
    const Shape shape = shape_of_units(3, 2176, 5, 7);
    const ReturnLayout layout(shape, weighted);
    EXPECT_EQ(layout.rows, weighted ? 5 : 3);
    EXPECT_EQ(layout.row_bytes(), 2 * 2 * shape.hidden) << "BF16, twice the bytes";
    std::int64_t next = 0;
    for (std::int32_t token = 0; token < shape.max_tokens; ++token)
      for (std::int32_t row = 0; row < layout.rows; ++row) {
        EXPECT_EQ(layout.offset(token, row), next);
        next += layout.row_bytes();
      }
    EXPECT_EQ(layout.all_bytes(shape), next);
  }
}

TEST(RowUnits, EveryOutputIsReturnedByOneBlock) {
  for (const bool weighted : {false, true})
    for (const int sms : {2, 3, 40, 132})
      for (const std::int32_t tokens : {0, 1, 16})
        for (const Phases phases : {Phases::both, Phases::send, Phases::receive}) {
          const Shape shape = shape_of_units(4, 7168, 8, 16);
          const CombineBlocks blocks =
              combine_blocks_by_units(shape, weighted, tokens, sms, phases);
          ASSERT_LE(blocks.all(), sms);
          ASSERT_EQ(blocks.senders > 0, phases != Phases::receive);
          ASSERT_EQ(blocks.adding > 0, phases != Phases::send);
          if (phases == Phases::receive)
            continue;
          std::set<std::tuple<std::int32_t, std::int32_t, std::int32_t>> rows;
          for (int block = 0; block < blocks.senders; ++block)
            for (std::int32_t item = block; item < returned_rows(shape, weighted);
                 item += blocks.senders) {
              const ReturnedRow row = returned_row(shape, weighted, item);
              EXPECT_TRUE(row.source < 4 && row.slot < 16 && row.choice < (weighted ? 8 : 1));
              rows.insert({row.source, row.slot, row.choice});
            }
          EXPECT_EQ(static_cast<std::int32_t>(rows.size()), returned_rows(shape, weighted));
        }
}

TEST(RowUnits, AreRefusedWhereTheyDoNotGo) {
  std::byte there{};
  LowLatencyMemory memory{};
  EXPECT_NE(refuse_units(shape_of_units(2, 256, 2, 16), memory).find("memory"), std::string::npos);
  memory.units = &there;
  EXPECT_EQ(refuse_units(shape_of_units(2, 256, 2, 16), memory), "");
  EXPECT_NE(refuse_units(shape_of_units(2, 256, 2, 17), memory), "");
  EXPECT_NE(refuse_units(shape_of_units(2, 256, 2, 0), memory), "");
  const std::int32_t counts = 0;
  const Shape few = shape_of_units(2, 256, 2, 16);
  EXPECT_NE(refuse_units_back(few, memory, &counts, false, 8).find("memory"), std::string::npos);
  memory.returned = &there;
  EXPECT_EQ(refuse_units_back(few, memory, &counts, false, 8), "");
  EXPECT_NE(refuse_units_back(few, memory, nullptr, false, 8), "");
  EXPECT_NE(refuse_units_back(few, memory, &counts, true, 8).find("packed"), std::string::npos);
  EXPECT_NE(refuse_units_back(few, memory, &counts, false, 1), "");
  EXPECT_NE(refuse_units_back(shape_of_units(2, 256, 2, 17), memory, &counts, false, 8), "");
}

} // namespace
} // namespace shmemctl::test
