#include "src/instruments/explain/log_scan.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <iterator>
#include <tuple>
#include <utility>

#include "src/base/error.h"
#include "src/base/hash.h"
#include "src/base/text.h"

namespace shmemctl::explain {

namespace {

constexpr std::size_t shown_bytes = 300; ///< bytes of a line that the report shows
constexpr std::size_t max_named_writers = 4096;

/// A mark by which a library says that a line is an error.
struct ErrorMark {
  const char* text;
  const char* library;
  Severity severity;
  bool at_begin; ///< the line has to begin with the text
};

/// The marks are in the order of the words that follow choice_words().
constexpr ErrorMark error_marks[] = {
    {" NCCL WARN ", "NCCL", Severity::warning, false},
    {" NVSHMEM WARN ", "NVSHMEM", Severity::warning, false},
    {": non-zero status: ", "NVSHMEM", Severity::error, false},
    {": NULL value ", "NVSHMEM", Severity::error, false},
    {" UCX  ERROR ", "UCX", Severity::error, false},
    {" UCX  FATAL ", "UCX", Severity::error, false},
    {"<warn> ", "libfabric", Severity::warning, false},
    {"*** An error occurred", "Open MPI", Severity::error, false},
    {"terminate called ", "C++", Severity::error, true},
    {"Assertion failed: ", "DeepEP", Severity::error, false},
    {"DeepEP error: ", "DeepEP", Severity::error, false},
    {"CUDA error: ", "CUDA", Severity::error, false},
    {"Segmentation fault", "process", Severity::error, false},
};

/// Marks of lines that libraries write, errors or not.
constexpr const char* library_marks[] = {" NCCL INFO ", " NVSHMEM INFO ", " UCX  ", "libfabric:"};

constexpr const char* traceback_mark = "Traceback (most recent call last)";

std::vector<std::string> words() {
  std::vector<std::string> all = choice_words();
  for (const ErrorMark& mark : error_marks)
    all.emplace_back(mark.text);
  for (const char* const mark : library_marks)
    all.emplace_back(mark);
  all.emplace_back(traceback_mark);
  return all;
}

constexpr std::uint64_t bits(std::size_t count) {
  return (std::uint64_t{1} << count) - 1;
}

/// Whether the line may be the last one of a traceback: "RuntimeError: text",
/// "torch.distributed.DistBackendError: text", "KeyboardInterrupt".
bool names_exception(std::string_view body) {
  std::size_t at = 0;
  while (at < body.size() && (std::isalnum(static_cast<unsigned char>(body[at])) != 0 ||
                              body[at] == '.' || body[at] == '_'))
    ++at;
  return at > 2 && std::isalpha(static_cast<unsigned char>(body[0])) != 0 &&
         (at == body.size() || body[at] == ':');
}

/// A hash that is the same for lines that differ only in numbers and addresses.
std::uint64_t hash_without_numbers(std::string_view text) {
  std::uint64_t hash = fnv1a_start;
  bool in_number = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool hex = text[i] == 'x' && i > 0 && text[i - 1] == '0';
    const bool digit = (text[i] >= '0' && text[i] <= '9') || hex ||
                       (in_number && std::isxdigit(static_cast<unsigned char>(text[i])) != 0);
    if (!digit)
      hash = fnv1a(text.substr(i, 1), hash);
    else if (!in_number)
      hash = fnv1a("#", hash);
    in_number = digit;
  }
  return hash;
}

/// The message of a line without the time, host and thread that its library puts in front.
std::string_view message_part(std::string_view body, std::string_view mark) {
  const std::size_t at = body.find(mark);
  return at == std::string_view::npos ? body : body.substr(at);
}

bool is_before(const Place& left, const Place& right) {
  return std::tie(left.file, left.line) < std::tie(right.file, right.line);
}

template <class Items, class Name>
std::vector<std::string> names_of(const Items& writers, const Name& name) {
  std::set<std::string> names;
  for (const std::size_t writer : writers)
    if (const std::string text = name(writer); !text.empty())
      names.insert(text);
  std::vector<std::string> sorted(names.begin(), names.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const std::string& a, const std::string& b) { return natural_less(a, b); });
  return sorted;
}

} // namespace

LogScan::LogScan(const Catalogue& catalogue) : recogniser_(catalogue, words()) {}

void LogScan::begin_file(const std::string& name) {
  files_.push_back({printable(name == "-" ? "stdin" : name), 0, 0, 0, false});
  label_decided_ = labelled_ = false;
}

void LogScan::end_file(const LineSplitter& lines) {
  LogFile& file = files_.back();
  file.lines = lines.lines();
  file.bytes = lines.bytes();
  file.cut_lines = lines.cut_lines();
  file.ended_within_line = lines.ended_within_line();
}

void LogScan::scan_file(const std::string& path) {
  begin_file(path);
  LineSplitter lines([this](std::string_view line, std::uint64_t number) { take(line, number); });
  read_log(path, lines);
  end_file(lines);
}

void LogScan::scan_text(const std::string& name, std::string_view text) {
  begin_file(name);
  LineSplitter lines([this](std::string_view line, std::uint64_t number) { take(line, number); });
  lines.feed(text);
  lines.finish();
  end_file(lines);
}

std::size_t LogScan::add_writer(Writer writer) {
  writer.file = files_.size() - 1;
  writers_.push_back(std::move(writer));
  return writers_.size() - 1;
}

std::size_t LogScan::writer_of(const LineOrigin& origin) {
  // Neighbouring lines often have the same writer.
  if (last_writer_ < writers_.size()) {
    const Writer& last = writers_[last_writer_];
    if (origin.rank
            ? last.launcher_rank == origin.rank
            : !last.launcher_rank && !origin.process.empty() && last.process == origin.process)
      return last_writer_;
  }
  const bool full = writers_.size() >= max_processes;
  if (origin.rank) {
    const auto found = by_rank_.find(*origin.rank);
    if (found != by_rank_.end())
      return found->second;
    if (!full) {
      Writer writer;
      writer.launcher_rank = origin.rank;
      return by_rank_[*origin.rank] = add_writer(std::move(writer));
    }
  } else if (!origin.process.empty()) {
    key_ = origin.process;
    const auto found = by_process_.find(key_);
    if (found != by_process_.end())
      return found->second;
    if (!full) {
      Writer writer;
      writer.process = key_;
      writer.host = std::string(origin.host);
      return by_process_[key_] = add_writer(std::move(writer));
    }
  }
  const std::size_t file = files_.size() - 1;
  const auto found = by_file_.find(file);
  return found != by_file_.end() ? found->second : by_file_[file] = add_writer({});
}

void LogScan::take_unknown(std::string_view body, const Place& place, std::size_t writer,
                           const std::string& library, Severity severity) {
  const std::uint64_t hash = hash_without_numbers(body.substr(0, 1000));
  auto found = unknown_.find(hash);
  if (found == unknown_.end()) {
    if (unknown_.size() == max_unknown) {
      ++more_unknown_;
      return;
    }
    found = unknown_.emplace(hash, SeenUnknown{}).first;
    found->second.first = place;
    found->second.text = printable(std::string(trim(body.substr(0, 1000))), shown_bytes);
    found->second.library = library;
    found->second.severity = severity;
  }
  ++found->second.count;
  if (found->second.writers.size() < max_named_writers)
    found->second.writers.insert(writer);
}

void LogScan::take(std::string_view line, std::uint64_t number) {
  if (line.find('\x1b') != std::string_view::npos) {
    remove_escapes(line, clean_);
    line = clean_;
  }
  if (!label_decided_ && !trim(line).empty()) {
    labelled_ = has_label(line);
    label_decided_ = true;
  }
  const Place place{files_.size() - 1, number};
  const LineOrigin origin = read_origin(line, labelled_);
  const std::size_t who = last_writer_ = writer_of(origin);
  Writer& writer = writers_[who];
  ++writer.lines;
  writer.last = place;
  if (writer.process.empty() && !origin.process.empty()) {
    writer.process = std::string(origin.process);
    writer.host = std::string(origin.host);
  }

  std::uint64_t seen = 0;
  const Recognised recognised = recogniser_.recognise(origin.body, seen);
  if (seen == 0 && !recognised.message && !recognised.step && !writer.in_traceback)
    return;
  const std::size_t marks_at = choice_words().size();
  constexpr std::size_t mark_count = std::size(error_marks);
  constexpr std::size_t library_count = std::size(library_marks);
  if ((seen & bits(marks_at)) != 0)
    read_choice(origin.body, seen & bits(marks_at), place, writer.setup);
  const std::uint64_t marks = seen >> marks_at;
  if ((marks & bits(mark_count + library_count)) != 0)
    writer.uses_library = true;
  if (recognised.step)
    writer.steps.emplace(*recognised.step, place);

  const bool begins_traceback = (marks >> (mark_count + library_count) & 1) != 0;
  const bool ends_traceback =
      writer.in_traceback && !begins_traceback && names_exception(origin.body);
  if (begins_traceback)
    writer.in_traceback = true;
  else if (ends_traceback)
    writer.in_traceback = false;

  if (recognised.message) {
    Seen& hit = known_[*recognised.message];
    if (hit.count == 0) {
      hit.first = place;
      hit.text = printable(std::string(trim(origin.body.substr(0, 1000))), shown_bytes);
    }
    ++hit.count;
    if (hit.writers.size() < max_named_writers)
      hit.writers.insert(who);
    writer.messages.insert(*recognised.message);
    return;
  }
  if (ends_traceback) {
    take_unknown(origin.body, place, who, "Python", Severity::error);
    return;
  }
  for (std::size_t i = 0; i < mark_count; ++i) {
    if ((marks >> i & 1) == 0)
      continue;
    const ErrorMark& mark = error_marks[i];
    if (mark.at_begin && !starts_with(origin.body, mark.text))
      continue;
    const std::string_view part = message_part(origin.body, mark.text);
    take_unknown(mark.at_begin || part.size() == origin.body.size() ? origin.body : part, place,
                 who, mark.library, mark.severity);
    return;
  }
}

std::vector<std::optional<std::size_t>> LogScan::group(std::vector<RankLog>& ranks) const {
  std::vector<std::optional<std::size_t>> group_of(writers_.size());
  // The lines of a rank may have several names: [rank3]: by PyTorch, host:pid:tid by NCCL. Two
  // processes with the same rank belong to different jobs.
  std::map<int, std::vector<std::size_t>> with_rank;
  std::map<std::size_t, std::set<std::size_t>> in_file;
  const auto is_of_a_rank = [](const Writer& writer) {
    return !writer.setup.choices.empty() || !writer.steps.empty() || writer.setup.rank ||
           writer.launcher_rank || writer.uses_library;
  };
  const auto add = [&](std::size_t at, std::optional<int> rank) {
    const Writer& writer = writers_[at];
    if (rank)
      for (const std::size_t other : with_rank[*rank]) {
        RankLog& there = ranks[other];
        if (!there.process.empty() && !writer.process.empty() && there.process != writer.process)
          continue;
        group_of[at] = other;
        return;
      }
    RankLog log;
    log.rank = rank;
    ranks.push_back(std::move(log));
    group_of[at] = ranks.size() - 1;
    if (rank)
      with_rank[*rank].push_back(ranks.size() - 1);
  };
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    const Writer& writer = writers_[i];
    if (!is_of_a_rank(writer))
      continue;
    add(i, writer.launcher_rank ? writer.launcher_rank : writer.setup.rank);
    in_file[writer.file].insert(*group_of[i]);
    // The next calls of add() need the process of the group.
    RankLog& log = ranks[*group_of[i]];
    if (log.process.empty()) {
      log.process = writer.process;
      log.host = writer.host;
    }
  }
  // Lines without a writer belong to the only rank of their file, if there is only one.
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    if (group_of[i])
      continue;
    const std::set<std::size_t>& others = in_file[writers_[i].file];
    if (others.size() == 1)
      group_of[i] = *others.begin();
    else if (!writers_[i].messages.empty())
      add(i, std::nullopt);
  }
  return group_of;
}

LogFacts LogScan::facts() {
  LogFacts facts;
  facts.files = files_;
  std::vector<RankLog> ranks;
  const std::vector<std::optional<std::size_t>> group_of = group(ranks);
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    if (!group_of[i])
      continue;
    RankLog& log = ranks[*group_of[i]];
    const Writer& writer = writers_[i];
    if (log.lines == 0 || is_before(log.last, writer.last))
      log.last = writer.last;
    log.lines += writer.lines;
    for (const auto& [step, place] : writer.steps) {
      const auto [at, is_new] = log.steps.emplace(step, place);
      if (!is_new && is_before(place, at->second))
        at->second = place;
    }
    log.messages.insert(writer.messages.begin(), writer.messages.end());
    ProcessSetup& setup = log.setup;
    const auto take_if_new = [](auto& to, const auto& from) {
      if (!to)
        to = from;
    };
    take_if_new(setup.rank, writer.setup.rank);
    take_if_new(setup.nranks, writer.setup.nranks);
    take_if_new(setup.gpu, writer.setup.gpu);
    take_if_new(setup.cuda_device, writer.setup.cuda_device);
    if (setup.network.empty())
      setup.network = writer.setup.network;
    setup.nccl_devices.insert(writer.setup.nccl_devices.begin(), writer.setup.nccl_devices.end());
    setup.gid_by_nccl_device.insert(writer.setup.gid_by_nccl_device.begin(),
                                    writer.setup.gid_by_nccl_device.end());
    setup.nvshmem_names.insert(writer.setup.nvshmem_names.begin(),
                               writer.setup.nvshmem_names.end());
    if (setup.nvshmem_transport.empty())
      setup.nvshmem_transport = writer.setup.nvshmem_transport;
    setup.nvshmem_devices.insert(writer.setup.nvshmem_devices.begin(),
                                 writer.setup.nvshmem_devices.end());
    setup.gid_by_ucx_port.insert(writer.setup.gid_by_ucx_port.begin(),
                                 writer.setup.gid_by_ucx_port.end());
    take_if_new(setup.nvshmem_gid, writer.setup.nvshmem_gid);
    setup.uses_efa = setup.uses_efa || writer.setup.uses_efa;
    setup.choices.insert(setup.choices.end(), writer.setup.choices.begin(),
                         writer.setup.choices.end());
    if (log.name.empty())
      log.name = log.rank                  ? fmt::format("rank {}", *log.rank)
                 : !writer.process.empty() ? printable(writer.process)
                                           : files_[writer.file].name;
  }
  for (RankLog& log : ranks)
    name_devices(log.setup);
  // If a log contains two jobs, their ranks are distinguished by their processes.
  std::map<std::string, int> names;
  for (const RankLog& log : ranks)
    ++names[log.name];
  for (RankLog& log : ranks)
    if (names[log.name] > 1 && !log.process.empty())
      log.name += " (" + printable(log.process) + ")";

  const auto name_of = [&](std::size_t writer) {
    return group_of[writer] ? ranks[*group_of[writer]].name : std::string();
  };
  for (const auto& [message, seen] : known_)
    facts.known.push_back(
        {message, seen.first, seen.text, seen.count, names_of(seen.writers, name_of)});
  for (const auto& [hash, seen] : unknown_)
    facts.unknown.push_back({seen.library, seen.severity, seen.first, seen.text, seen.count,
                             names_of(seen.writers, name_of)});
  const auto earlier = [](const auto& a, const auto& b) { return is_before(a.first, b.first); };
  std::sort(facts.known.begin(), facts.known.end(), earlier);
  std::sort(facts.unknown.begin(), facts.unknown.end(), earlier);
  std::stable_sort(ranks.begin(), ranks.end(), [](const RankLog& a, const RankLog& b) {
    if (a.rank.has_value() != b.rank.has_value())
      return a.rank.has_value();
    return a.rank != b.rank ? a.rank < b.rank : natural_less(a.name, b.name);
  });
  facts.ranks = std::move(ranks);
  facts.more_unknown = more_unknown_;
  return facts;
}

} // namespace shmemctl::explain
