#include "src/base/error.h"

#include <cerrno>
#include <gtest/gtest.h>

namespace shmemctl {

TEST(Error, NamesSubjectPlaceActionAndCauseOnOneLine) {
  const Error error(ExitCode::unavailable, "memory region", "register", "Cannot allocate memory",
                    "raise the memlock limit", {"node7", 3, "mlx5_1", 2});
  EXPECT_EQ(error.message(), "memory region (host node7, PE 3, device mlx5_1, port 2): cannot "
                             "register: Cannot allocate memory");
  EXPECT_EQ(error.fix(), "raise the memlock limit");
  EXPECT_EQ(static_cast<int>(error.code()), 3);
}

std::string message(const std::string& subject, const std::string& action) {
  return Error(ExitCode::usage, subject, action, "why", "fix").message();
}

TEST(Error, HasOneTemplateWhateverTheActionIs) {
  EXPECT_EQ(message("a.xml", "read"), "a.xml: cannot read: why");
  EXPECT_EQ(message("PE 3", "connect"), "PE 3: cannot connect: why");
  EXPECT_EQ(message("PE 3", "read its connections"), "PE 3: cannot read its connections: why");
  EXPECT_EQ(message("phase heap", "wait for PE 2"), "phase heap: cannot wait for PE 2: why");
  EXPECT_EQ(message("", "pair the PEs"), "cannot pair the PEs: why");
}

TEST(Error, WithoutAnActionTheCauseIsTheProblem) {
  EXPECT_EQ(message("--pin", ""), "--pin: why");
  EXPECT_EQ(Error(ExitCode::usage, "ucx", "", "why", "fix", {"n1", 3, "", {}}).message(),
            "ucx (host n1, PE 3): why");
}

TEST(Error, WithoutACauseItEndsWithTheAction) {
  EXPECT_EQ(Error(ExitCode::usage, "a.xml", "read", "", "fix").message(), "a.xml: cannot read");
}

TEST(Error, InputErrorsAreExitCode2AndCarryThePosition) {
  const Error error = input_error("a.xml", "line 3, column 7", "not closed", "close it");
  EXPECT_EQ(error.message(), "a.xml: line 3, column 7: not closed");
  EXPECT_EQ(error.code(), ExitCode::usage);
  EXPECT_EQ(input_error("--alpha", "", "not a number", "").message(), "--alpha: not a number");
}

TEST(Error, SystemErrorsCarryTheSystemsWords) {
  EXPECT_NE(system_error("f", "open", ENOENT, "x").message().find("No such file"),
            std::string::npos);
}

TEST(Error, TheSameFailureOfTwoPesDiffersInTheirPlaceOnly) {
  const Where here{"a", 0, "mlx5_0", 1}, there{"b", 3, "mlx5_0", 1}, device{"b", 3, "mlx5_1", 1};
  const auto error = [](const Where& where, const std::string& cause, const std::string& fix) {
    return Error(ExitCode::unavailable, "heap", "reserve memory", cause, fix, where);
  };
  const Error first = error(here, "no space", "free memory");
  EXPECT_TRUE(same_failure(first, error(there, "no space", "free memory on b")));
  EXPECT_FALSE(same_failure(first, error(device, "no space", "free memory")));
  EXPECT_FALSE(same_failure(first, error(here, "no huge pages", "free memory")));
  EXPECT_FALSE(
      same_failure(first, Error(ExitCode::usage, "heap", "reserve memory", "no space", "", here)));
}

TEST(Error, AnotherSubjectActionOrLocationChangesTheMessageAlone) {
  const Error error =
      Error(ExitCode::usage, "heap", "grow", "no space", "free memory", {"", {}, "mlx5_0", 2})
          .on_all_pes();
  EXPECT_EQ(error.with_subject("heap in phase heap").message(),
            "heap in phase heap (device mlx5_0, port 2): cannot grow: no space");
  EXPECT_EQ(error.with_action("map").message(),
            "heap (device mlx5_0, port 2): cannot map: no space");
  EXPECT_EQ(error.with_where({"n1", 3, "", {}}).message(),
            "heap (host n1, PE 3): cannot grow: no space");
  for (const Error& changed : {error.with_subject("a"), error.with_action("b"),
                               error.with_where({"n1", 3, "", {}}), error.located("n1", 3)}) {
    EXPECT_EQ(changed.code(), ExitCode::usage);
    EXPECT_EQ(changed.fix(), "free memory");
    EXPECT_TRUE(changed.same_on_all_pes());
    EXPECT_FALSE(changed.printed());
  }
  Error printed = error;
  printed.mark_printed();
  EXPECT_TRUE(printed.located("n1", 3).printed());
  EXPECT_TRUE(printed.with_subject("a").printed());
  EXPECT_TRUE(printed.with_fix("buy memory").printed());
}

TEST(Error, AnotherFixChangesNothingElse) {
  Error error = Error(ExitCode::usage, "bruingup", "run", "no such program", "check its name",
                      {"n1", 3, "", {}})
                    .on_all_pes();
  error.mark_printed();
  const Error changed = error.with_fix("did you mean bringup?\nOtherwise " + error.fix());
  EXPECT_EQ(changed.fix(), "did you mean bringup?\\x0aOtherwise check its name");
  EXPECT_EQ(changed.message(), error.message());
  EXPECT_EQ(changed.code(), ExitCode::usage);
  EXPECT_EQ(changed.where().pe, 3);
  EXPECT_TRUE(changed.printed());
  EXPECT_TRUE(changed.same_on_all_pes());
}

TEST(Error, LocatedNamesTheHostAndPeThatAreNotKnown) {
  const auto located = [](const Where& where) {
    return Error(ExitCode::usage, "a", "", "b", "c", where).located("n1", 3).message();
  };
  EXPECT_EQ(located({}), "a (host n1, PE 3): b");
  EXPECT_EQ(located({"n0", {}, "mlx5_0", {}}), "a (host n0, PE 3, device mlx5_0): b");
  EXPECT_EQ(located({"", 0, "", {}}), "a (host n1, PE 0): b");
  EXPECT_EQ(Error(ExitCode::usage, "a", "", "b", "c").located("n1", std::nullopt).message(),
            "a (host n1): b");
}

TEST(Error, HostileNamesCannotBreakALine) {
  const Error error(ExitCode::usage, "a\nb\x1b[31m\xff", "read", "", "line1\nline2");
  EXPECT_EQ(error.message(), "a\\x0ab\\x1b[31m\\xff: cannot read");
  EXPECT_EQ(error.fix(), "line1\\x0aline2");
}

TEST(Error, ControlsInUtf8AndChangesOfDirectionAreEscaped) {
  EXPECT_EQ(printable("a\u009b31mb"), "a\\xc2\\x9b31mb");
  EXPECT_EQ(printable("a\u202eb"), "a\\xe2\\x80\\xaeb");
  EXPECT_EQ(printable("a\u061cb"), "a\\xd8\\x9cb");
}

TEST(Error, PrintableKeepsUtf8AndCutsLongText) {
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(printable(std::string(500, 'a'), 10), std::string(10, 'a') + "...");
}

} // namespace shmemctl
