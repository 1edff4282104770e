// A log of any bytes gives facts whose places exist and whose text is UTF-8, whatever the blocks in
// which it arrives.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/explain/catalogue.h"
#include "src/instruments/explain/explanation.h"
#include "src/instruments/explain/log_scan.h"

namespace {

using namespace shmemctl;
using namespace shmemctl::explain;

void require(bool holds) {
  if (!holds)
    std::abort();
}

/// The steps and the first messages of the built-in catalogue: each input makes a search of its
/// own, which takes a tenth of a second for all of them under the sanitizers.
const Catalogue& catalogue() {
  static const Catalogue made = [] {
    constexpr int messages = 6;
    const std::string all = log_messages_text();
    std::size_t end = 0;
    for (int i = 0; i <= messages; ++i)
      end = all.find("\nmessage ", end + 1);
    Catalogue begin;
    begin.add(all.substr(0, end + 1), "built in");
    return begin;
  }();
  return made;
}

void check_place(const LogFacts& facts, const Place& place) {
  require(place.file < facts.files.size());
  require(place.line >= 1 && place.line <= facts.files[place.file].lines);
}

/// The same lines, however the text is cut.
void check_blocks(const std::string& text) {
  std::string whole, cut;
  LineSplitter at_once([&whole](std::string_view line, std::uint64_t) {
    whole += line;
    whole += '\n';
  });
  at_once.feed(text);
  at_once.finish();
  LineSplitter in_pieces([&cut](std::string_view line, std::uint64_t) {
    cut += line;
    cut += '\n';
  });
  for (std::size_t i = 0; i < text.size(); i += 7)
    in_pieces.feed(std::string_view(text).substr(i, 7));
  in_pieces.finish();
  require(whole == cut && at_once.lines() == in_pieces.lines());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check_blocks(text);
  LogScan scan(catalogue());
  scan.scan_text("fuzz.log", text);
  const LogFacts facts = scan.facts();
  for (const RankLog& log : facts.ranks) {
    require(!log.name.empty());
    check_place(facts, log.last);
    for (const Choice& choice : log.setup.choices)
      check_place(facts, choice.first);
    for (const auto& [step, place] : log.steps)
      check_place(facts, place);
  }
  for (const KnownHit& hit : facts.known)
    check_place(facts, hit.first);
  for (const UnknownHit& hit : facts.unknown)
    check_place(facts, hit.first);
  to_json(facts, catalogue(), nullptr).dump(); // throws where a string is not UTF-8
  for (const Finding& finding : findings_of(facts, catalogue(), nullptr))
    require(!finding.fix.empty() && !first_non_utf8(finding.message + finding.subject));
  return 0;
}
