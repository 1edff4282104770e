// Reads the fixes that findings print, as an operator's shell would.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "src/base/finding.h"
#include "src/base/text.h"
#include "src/model/topo/advice/env_fix.h"

namespace shmemctl::test {

/// Reads the lines that fixes print, as a shell would; nothing else.
class PrintedLines {
public:
  void read(const std::string& text) {
    for (const std::string& command : commands(text)) {
      const std::vector<std::string> words = shell_words(command);
      ASSERT_FALSE(words.empty()) << text;
      if (words[0] == "unset")
        for (std::size_t i = 1; i < words.size(); ++i)
          put(words[i], {});
      else if (words[0] == "export")
        for (std::size_t i = 1; i < words.size(); ++i)
          read_export(words[i]);
      else
        read_array(command);
    }
  }

  /// No value: unset. Several: one for each local rank.
  const std::map<std::string, std::vector<std::string>>& variables() const { return variables_; }

  EnvChange change() const {
    EnvChange change;
    for (const auto& [variable, values] : variables_) {
      if (values.empty())
        change.unset(variable);
      else
        change.set_per_rank(variable, values);
    }
    return change;
  }

  /// Split at "; " outside of quotes, without the comment at the end.
  static std::vector<std::string> commands(const std::string& text) {
    std::vector<std::string> found(1);
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      quoted = quoted != (text[i] == '\'');
      if (!quoted && text.compare(i, 4, "  # ") == 0)
        break;
      if (!quoted && text.compare(i, 2, "; ") == 0) {
        found.emplace_back();
        ++i;
      } else {
        found.back() += text[i];
      }
    }
    return found;
  }
  /// The words of one command, without their quotes. An expansion `${...}` is part of its word,
  /// with the spaces in it.
  static std::vector<std::string> shell_words(const std::string& text) {
    std::vector<std::string> found(1);
    bool quoted = false;
    int expansions = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (!quoted && text.compare(i, 2, "${") == 0)
        ++expansions;
      if (!quoted && text[i] == '}' && expansions > 0)
        --expansions;
      if (text[i] == '\'')
        quoted = !quoted;
      else if (text[i] == '\\' && !quoted && i + 1 < text.size())
        found.back() += text[++i];
      else if (text[i] == ' ' && !quoted && expansions == 0)
        found.emplace_back();
      else
        found.back() += text[i];
    }
    return found;
  }

private:
  void read_export(const std::string& word) {
    const std::size_t equals = word.find('=');
    ASSERT_NE(equals, std::string::npos) << word;
    const std::string value = word.substr(equals + 1);
    if (starts_with(value, "${by_rank["))
      put(word.substr(0, equals), by_rank_);
    else
      put(word.substr(0, equals), {value});
  }
  void read_array(const std::string& command) {
    ASSERT_TRUE(starts_with(command, "by_rank=(") && command.back() == ')') << command;
    by_rank_ = shell_words(command.substr(9, command.size() - 10));
  }
  void put(const std::string& variable, const std::vector<std::string>& values) {
    const auto [known, is_new] = variables_.try_emplace(variable, values);
    EXPECT_TRUE(is_new || known->second == values) << variable << " has two values in the fixes";
  }

  std::map<std::string, std::vector<std::string>> variables_; ///< no value: unset
  std::vector<std::string> by_rank_;
};

/// Environment lines; other fixes need a person.
inline bool has_lines(const Finding& finding) {
  return starts_with(finding.fix, "export ") || starts_with(finding.fix, "unset ") ||
         starts_with(finding.fix, "by_rank=");
}

} // namespace shmemctl::test
