#include <gtest/gtest.h>
#include <map>
#include <random>

#include "src/runtime/memory/buffers/page_refcounts.h"

namespace shmemctl {
namespace {

/// A reference implementation: one entry for each page.
class Oracle {
public:
  struct Page {
    std::shared_ptr<const PageFile> file;
    std::uint64_t offset_bytes = 0;
    unsigned uses = 0;
  };
  bool holds(std::uintptr_t page) const { return pages_.count(page) != 0; }
  std::map<std::uintptr_t, Page>& pages() { return pages_; }

private:
  std::map<std::uintptr_t, Page> pages_;
};

class Random {
public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::size_t below(std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end - 1)(engine_);
  }

private:
  std::mt19937 engine_;
};

constexpr std::size_t arena_pages = 40;

PageSpan random_span(Random& random) {
  const std::size_t begin = random.below(arena_pages);
  const std::size_t count = 1 + random.below(arena_pages - begin);
  const std::uintptr_t page = page_bytes();
  return {(1000 + begin) * page, (1000 + begin + count) * page};
}

/// The reference counts of every page.
void compare(const PageRefcounts& refcounts, Oracle& oracle) {
  std::map<std::uintptr_t, SharedPiece> by_page;
  for (const auto& [begin, piece] : refcounts.all()) {
    ASSERT_EQ(begin, piece.pages.begin);
    for (std::uintptr_t at = begin; at < piece.pages.end; at += page_bytes())
      ASSERT_TRUE(by_page.emplace(at, piece).second) << "two pieces hold a page";
  }
  ASSERT_EQ(by_page.size(), oracle.pages().size());
  for (const auto& [at, page] : oracle.pages()) {
    const SharedPiece& piece = by_page.at(at);
    ASSERT_EQ(piece.file, page.file);
    ASSERT_EQ(piece.offset_bytes + (at - piece.pages.begin), page.offset_bytes);
    ASSERT_EQ(piece.uses, page.uses);
  }
}

void compare_view(const PageRefcounts& refcounts, Oracle& oracle, const PageSpan& span) {
  std::uintptr_t at = span.begin;
  for (const SharedPiece& piece : refcounts.pieces(span)) {
    for (; at < piece.pages.begin; at += page_bytes())
      ASSERT_FALSE(oracle.holds(at));
    for (; at < piece.pages.end; at += page_bytes()) {
      ASSERT_EQ(oracle.pages().at(at).file, piece.file);
      ASSERT_EQ(oracle.pages().at(at).offset_bytes, piece.offset_bytes + (at - piece.pages.begin));
    }
  }
  for (; at < span.end; at += page_bytes())
    ASSERT_FALSE(oracle.holds(at));
  std::size_t missing_pages = 0;
  for (const PageSpan& gap : refcounts.missing(span))
    for (std::uintptr_t page = gap.begin; page < gap.end; page += page_bytes(), ++missing_pages)
      ASSERT_FALSE(oracle.holds(page));
  for (std::uintptr_t page = span.begin; page < span.end; page += page_bytes())
    missing_pages -= oracle.holds(page) ? 0 : 1;
  ASSERT_EQ(missing_pages, 0u);
}

void add(PageRefcounts& refcounts, Oracle& oracle, const PageSpan& span, Random& random) {
  for (const PageSpan& gap : refcounts.missing(span)) {
    const auto file = std::make_shared<const PageFile>();
    const std::uint64_t offset_bytes = random.below(100) * page_bytes();
    refcounts.insert({gap, file, offset_bytes, 99});
    for (std::uintptr_t at = gap.begin; at < gap.end; at += page_bytes())
      oracle.pages()[at] = {file, offset_bytes + (at - gap.begin), 0};
  }
  refcounts.add_use(span);
  for (std::uintptr_t at = span.begin; at < span.end; at += page_bytes())
    ++oracle.pages()[at].uses;
}

void drop(PageRefcounts& refcounts, Oracle& oracle, const PageSpan& span) {
  refcounts.drop_use(span);
  std::map<std::uintptr_t, Oracle::Page> unused;
  for (std::uintptr_t at = span.begin; at < span.end; at += page_bytes())
    if (--oracle.pages()[at].uses == 0) {
      unused[at] = oracle.pages()[at];
      oracle.pages().erase(at);
    }
  for (const SharedPiece& piece : refcounts.take_unused())
    for (std::uintptr_t at = piece.pages.begin; at < piece.pages.end; at += page_bytes()) {
      ASSERT_EQ(unused.at(at).file, piece.file);
      ASSERT_EQ(unused.at(at).offset_bytes, piece.offset_bytes + (at - piece.pages.begin));
      unused.erase(at);
    }
  ASSERT_TRUE(unused.empty());
}

TEST(PageRefcounts, AgreesWithOneEntryForEachPage) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Random random(seed);
    PageRefcounts refcounts;
    Oracle oracle;
    std::vector<PageSpan> live;
    for (int step = 0; step < 150; ++step) {
      if (live.empty() || (live.size() < 12 && random.below(2) == 0)) {
        live.push_back(random_span(random));
        add(refcounts, oracle, live.back(), random);
      } else {
        const auto victim = live.begin() + static_cast<std::ptrdiff_t>(random.below(live.size()));
        ASSERT_NO_FATAL_FAILURE(drop(refcounts, oracle, *victim)) << "seed " << seed;
        live.erase(victim);
      }
      ASSERT_NO_FATAL_FAILURE(compare(refcounts, oracle)) << "seed " << seed << " step " << step;
      ASSERT_NO_FATAL_FAILURE(compare_view(refcounts, oracle, random_span(random)))
          << "seed " << seed;
    }
  }
}

TEST(PageRefcounts, PiecesOfOneFileAreJoined) {
  PageRefcounts refcounts;
  const std::uintptr_t page = page_bytes();
  refcounts.insert({{10 * page, 20 * page}, std::make_shared<const PageFile>(), 0, 0});
  refcounts.add_use({12 * page, 14 * page}); // splits the range
  EXPECT_EQ(refcounts.all().size(), 3u);
  const std::vector<SharedPiece> whole = refcounts.pieces({11 * page, 19 * page});
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].pages, (PageSpan{11 * page, 19 * page}));
  EXPECT_EQ(whole[0].offset_bytes, page);
}

} // namespace
} // namespace shmemctl
