#include "src/memory/buffers/page_ledger.h"

#include <algorithm>

namespace shmemctl {

namespace {

/// `piece` without what lies in front of `begin` or behind `end`.
SharedPiece cut(SharedPiece piece, std::uintptr_t begin, std::uintptr_t end) {
  begin = std::max(begin, piece.pages.begin);
  piece.offset_bytes += begin - piece.pages.begin;
  piece.pages = {begin, std::min(end, piece.pages.end)};
  return piece;
}

bool goes_on(const SharedPiece& left, const SharedPiece& right) {
  return left.pages.end == right.pages.begin && left.file == right.file &&
         left.offset_bytes + left.pages.size_bytes() == right.offset_bytes;
}

} // namespace

void PageLedger::split(std::uintptr_t at) {
  auto behind = pieces_.upper_bound(at);
  if (behind == pieces_.begin())
    return;
  SharedPiece& piece = std::prev(behind)->second;
  if (piece.pages.begin == at || piece.pages.end <= at)
    return;
  pieces_.emplace_hint(behind, at, cut(piece, at, piece.pages.end));
  piece.pages.end = at;
}

std::vector<PageSpan> PageLedger::missing(const PageSpan& pages) const {
  std::vector<PageSpan> gaps;
  std::uintptr_t at = pages.begin;
  for (const SharedPiece& piece : this->pieces(pages)) {
    if (piece.pages.begin > at)
      gaps.push_back({at, piece.pages.begin});
    at = piece.pages.end;
  }
  if (at < pages.end)
    gaps.push_back({at, pages.end});
  return gaps;
}

void PageLedger::insert(SharedPiece piece) {
  piece.uses = 0;
  const std::uintptr_t begin = piece.pages.begin;
  pieces_.emplace(begin, std::move(piece));
}

void PageLedger::add_use(const PageSpan& pages) {
  split(pages.begin);
  split(pages.end);
  for (auto at = pieces_.lower_bound(pages.begin); at != pieces_.end() && at->first < pages.end;
       ++at)
    ++at->second.uses;
}

void PageLedger::drop_use(const PageSpan& pages) {
  split(pages.begin);
  split(pages.end);
  for (auto at = pieces_.lower_bound(pages.begin); at != pieces_.end() && at->first < pages.end;
       ++at)
    --at->second.uses;
}

std::vector<SharedPiece> PageLedger::take_unused() {
  std::vector<SharedPiece> unused;
  for (auto at = pieces_.begin(); at != pieces_.end();) {
    if (at->second.uses != 0) {
      ++at;
      continue;
    }
    unused.push_back(std::move(at->second));
    at = pieces_.erase(at);
  }
  return unused;
}

std::vector<SharedPiece> PageLedger::pieces(const PageSpan& pages) const {
  std::vector<SharedPiece> found;
  auto at = pieces_.upper_bound(pages.begin);
  if (at != pieces_.begin())
    --at;
  for (; at != pieces_.end() && at->first < pages.end; ++at) {
    if (at->second.pages.end <= pages.begin)
      continue;
    SharedPiece piece = cut(at->second, pages.begin, pages.end);
    if (!found.empty() && goes_on(found.back(), piece))
      found.back().pages.end = piece.pages.end;
    else
      found.push_back(std::move(piece));
  }
  return found;
}

} // namespace shmemctl
