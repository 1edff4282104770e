#include "cli/complete.h"

#include <algorithm>
#include <iostream>
#include <set>

#include "cli/help_format.h"
#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/base/text.h"
#include "src/instruments/bench/case.h"
#include "src/instruments/check/parts.h"
#include "src/instruments/doctor/doctor.h"
#include "src/model/moe/routing.h"

namespace shmemctl {

namespace {

constexpr std::size_t longest_description = 60;

/// The text up to the first full stop, semicolon, colon or [, cut to longest_description.
std::string short_text(const std::string& text) {
  std::string result = text;
  for (const char* end : {". ", "; ", ": ", " ["})
    result = result.substr(0, result.find(end));
  if (ends_with(result, "."))
    result.pop_back();
  return result.size() <= longest_description
             ? result
             : result.substr(0, result.rfind(' ', longest_description - 3)) + "...";
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0 && option.get_expected_min() > 0;
}

/// The names of this machine's RDMA devices.
std::vector<std::string> hca_names() {
  return Sysroot().list("/sys/class/infiniband");
}

std::vector<std::string> check_words() {
  std::vector<std::string> words;
  std::set<std::string> groups;
  for (const Check& check : all_checks()) {
    if (groups.insert(check.group).second)
      words.push_back(check.group);
    words.push_back(check.id);
  }
  return words;
}

std::vector<std::string> part_words() {
  std::vector<std::string> words = {expect_part};
  for (const CheckPart& part : check_parts())
    words.emplace_back(part.id);
  return words;
}

std::vector<std::string> case_words() {
  std::vector<std::string> words = {"all"};
  for (const bench::Initiator initiator : bench::all_initiators)
    for (const bench::BenchCase& bench_case : bench::cases_of(initiator, bench::MemoryKind::host))
      if (std::find(words.begin(), words.end(), bench_case.info.name) == words.end())
        words.push_back(bench_case.info.name);
  return words;
}

/// The values of a flag, as far as they have names.
struct Values {
  std::vector<std::string> words;
  bool is_list = false; ///< several values, with commas between them
  ShellWords besides = ShellWords::none;
};

Values values_of(const CLI::Option& option) {
  Values values;
  values.words = value_set(option);
  values.words.erase(std::remove(values.words.begin(), values.words.end(), ""), values.words.end());
  const std::string type = value_name(option);
  const std::string name = option.get_lnames().empty() ? "" : option.get_lnames().front();
  if (!values.words.empty())
    return values;
  if (type == "PART")
    return {part_words(), true, ShellWords::none};
  if (name == "only" || name == "skip")
    return {check_words(), true, ShellWords::none};
  if (name == "transport")
    return {transport_choices().all, true, ShellWords::none};
  if (name == "hca-list")
    return {hca_names(), true, ShellWords::none};
  if (name == "kill-nic" || name == "slow-nic" || name == "hca-prefix")
    return {hca_names(), false, ShellWords::none};
  if (name == "routing")
    return {moe::routing_names(), false, ShellWords::files};
  if (name == "pin")
    return {{"auto", "none"}, false, ShellWords::none};
  if (type.find("FILE") != std::string::npos)
    values.besides = ShellWords::files;
  else if (type.find("DIR") != std::string::npos)
    values.besides = ShellWords::directories;
  return values;
}

/// The position that the words before the cursor lead to: subcommand, pending flag, arguments.
class Place {
public:
  explicit Place(const CLI::App& root) : chain_{&root} {}

  void pass(const std::string& word) {
    if (foreign_)
      return;
    if (pending_ != nullptr) {
      pending_ = nullptr;
    } else if (word == "--") {
      only_arguments_ = true;
    } else if (!only_arguments_ && starts_with(word, "-") && word.size() > 1) {
      pass_flag(word);
    } else if (begins_command()) {
      const CLI::App* own = find_subcommand(*chain_.front(), word);
      foreign_ = own == nullptr; // another program, which has arguments of its own
      chain_.resize(1);
      if (own != nullptr)
        chain_.push_back(own);
      during_ = only_arguments_ = false;
    } else if (const CLI::App* child = find_subcommand(*chain_.back(), word)) {
      chain_.push_back(child);
    }
  }

  Candidates at(const std::string& current) const {
    Candidates result;
    if (foreign_) {
      result.besides = ShellWords::files;
    } else if (pending_ != nullptr) {
      add_values(values_of(*pending_), "", current, result);
    } else if (!only_arguments_ && starts_with(current, "-")) {
      const std::size_t sign = current.find('=');
      const CLI::Option* option =
          sign == std::string::npos ? nullptr : flag(current.substr(0, sign));
      if (option != nullptr)
        add_values(values_of(*option), current.substr(0, sign + 1), current.substr(sign + 1),
                   result);
      else
        add_flags(current, result);
    } else if (begins_command()) {
      add_subcommands(*chain_.front(), current, result);
      result.besides = ShellWords::commands;
    } else if (!listed_subcommands(*chain_.back()).empty()) {
      add_subcommands(*chain_.back(), current, result);
    } else {
      add_arguments(current, result);
    }
    return result;
  }

private:
  /// Whether a word that is no flag begins a command.
  bool begins_command() const { return during_ || chain_.back()->get_prefix_command(); }

  const CLI::Option* flag(const std::string& name) const {
    for (std::size_t level = chain_.size(); level-- > 0;)
      if (const CLI::Option* option = chain_[level]->get_option_no_throw(name))
        return option;
    return nullptr;
  }

  void pass_flag(const std::string& word) {
    const std::size_t sign = word.find('=');
    const bool is_long = starts_with(word, "--");
    const CLI::Option* option = flag(is_long ? word.substr(0, sign) : word.substr(0, 2));
    const bool has_value = is_long ? sign != std::string::npos : word.size() > 2; // -n4
    if (option != nullptr && takes_value(*option) && !has_value)
      pending_ = option;
    during_ = during_ || (word == "--during" && option != nullptr);
  }

  static void add(const std::string& word, const std::string& description,
                  const std::string& current, Candidates& to) {
    if (starts_with(word, current))
      to.words.push_back({word, short_text(description)});
  }

  static void add_values(const Values& values, const std::string& before,
                         const std::string& current, Candidates& to) {
    to.besides = values.besides;
    const std::size_t comma = values.is_list ? current.rfind(',') : std::string::npos;
    const std::string list = comma == std::string::npos ? "" : current.substr(0, comma + 1);
    const std::vector<std::string> taken = split(list, ',');
    for (const std::string& word : values.words)
      if (std::find(taken.begin(), taken.end(), word) == taken.end())
        add(before + list + word, "", before + current, to);
  }

  void add_flags(const std::string& current, Candidates& to) const {
    for (std::size_t level = chain_.size(); level-- > 0;) {
      for (const CLI::Option* option : chain_[level]->get_options()) {
        if (option->get_group().empty())
          continue;
        for (const std::string& name : option->get_lnames())
          if (flag("--" + name) == option)
            add("--" + name, option->get_description(), current, to);
        for (const std::string& name : option->get_snames())
          if (flag("-" + name) == option)
            add("-" + name, option->get_description(), current, to);
      }
      if (!chain_[level]->get_fallthrough())
        break; // `run`: what follows it is not for the program itself
    }
  }

  static void add_subcommands(const CLI::App& app, const std::string& current, Candidates& to) {
    for (const CLI::App* child : listed_subcommands(app))
      add(child->get_name(), child->get_description(), current, to);
  }

  void add_arguments(const std::string& current, Candidates& to) const {
    const CLI::App& app = *chain_.back();
    if (app.get_name() == "bench")
      for (const std::string& word : case_words())
        add(word, "", current, to);
    else if (app.get_name() == "help")
      add_subcommands(*chain_.front(), current, to);
    else
      for (const CLI::Option* option : app.get_options())
        if (is_positional(*option)) {
          for (const std::string& word : value_set(*option))
            add(word, "", current, to);
          if (value_set(*option).empty())
            to.besides = ShellWords::files;
        }
  }

  std::vector<const CLI::App*> chain_;
  const CLI::Option* pending_ = nullptr; ///< the flag whose value comes next
  bool during_ = false;                  ///< --during has been given: a command comes next
  bool only_arguments_ = false;          ///< after --
  bool foreign_ = false;
};

} // namespace

Candidates complete(const CLI::App& app, const std::vector<std::string>& words) {
  Place place(app);
  if (words.empty())
    return place.at("");
  std::for_each(words.begin(), words.end() - 1,
                [&place](const std::string& word) { place.pass(word); });
  return place.at(words.back());
}

void print_candidates(const CLI::App& app, const std::vector<std::string>& words) {
  const Candidates candidates = complete(app, words);
  constexpr const char* kinds[] = {"words", "files", "directories", "commands"};
  std::cout << kinds[static_cast<std::size_t>(candidates.besides)] << '\n';
  for (const Candidate& candidate : candidates.words)
    std::cout << candidate.word << '\t' << candidate.description << '\n';
}

} // namespace shmemctl
