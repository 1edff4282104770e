#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/model/topo/readers/reader.h"

namespace shmemctl {

namespace {

std::string message_of(const std::string& text) {
  try {
    detect_format(text, "x");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.message() + " | " + error.fix();
  }
  return "no error";
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST(Format, NamesReadBack) {
  for (const TopoFormat format :
       {TopoFormat::hwloc_xml, TopoFormat::nccl_xml, TopoFormat::nvidia_smi, TopoFormat::report})
    EXPECT_EQ(parse_topo_format(to_string(format)), format);
  EXPECT_EQ(parse_topo_format("xml"), std::nullopt);
}

TEST(Format, IsRecognisedByContent) {
  EXPECT_EQ(detect_format("<?xml version=\"1.0\"?>\n<!-- <system> -->\n"
                          "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">",
                          "x"),
            TopoFormat::hwloc_xml);
  EXPECT_EQ(detect_format("\xef\xbb\xbf<system version=\"1\">\n", "x"), TopoFormat::nccl_xml);
  EXPECT_EQ(detect_format("\n {\"schema\": {\"name\": \"shmemctl.report\"}}", "x"),
            TopoFormat::report);
  EXPECT_EQ(detect_format("\tGPU0\tGPU1\nGPU0\t X \tPIX\n", "x"), TopoFormat::nvidia_smi);
  EXPECT_EQ(detect_format("$ nvidia-smi topo -m\n\t\x1b[4mGPU0\tGPU1\x1b[0m\n", "x"),
            TopoFormat::nvidia_smi);
  EXPECT_EQ(detect_format("      GPU0 mlx5_0 CPU Affinity\r\n", "x"), TopoFormat::nvidia_smi);
}

TEST(Format, SaysWhatItIsIfItIsNone) {
  EXPECT_TRUE(mentions(message_of(""), "line 1, column 1: the file is empty"));
  EXPECT_TRUE(mentions(message_of("<graphs version=\"1\"/>"), "an NCCL graph file"));
  EXPECT_TRUE(mentions(message_of("<?xml?>\n <html>"),
                       "line 2, column 2: unknown XML format with root <html>"));
  EXPECT_TRUE(mentions(message_of("<!-- never ends"), "XML without an element"));
  EXPECT_TRUE(mentions(message_of("{\"schema\": 3}"), "not a shmemctl report"));
  EXPECT_TRUE(mentions(message_of("{\"schema\": {\"name\": 3}}"), "not a shmemctl report"));
  EXPECT_TRUE(mentions(message_of("{"), "invalid JSON"));
  EXPECT_TRUE(mentions(message_of("a GPU0 table\n"), "unknown format"));
  for (const char* format : {"hwloc", "NCCL", "nvidia-smi", "report"})
    EXPECT_TRUE(mentions(message_of("some text"), format)) << format;
  EXPECT_TRUE(mentions(message_of(std::string("\0\xff", 2)), "unknown format"));
}

} // namespace shmemctl
