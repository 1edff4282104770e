// Truncated texts: what is left is read, and what is missing is reported.
#include <gtest/gtest.h>

#include <random>

#include "src/base/error.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"

namespace shmemctl {
namespace {

std::string cell_word(const Node& node, int left, int right) {
  return to_string(distance(node, left, right));
}

/// All notes as one text, to search in.
std::string notes_of(const Node& node) {
  std::string text;
  for (const std::string& note : node.notes)
    text += note + "\n";
  return text;
}

bool says(const Node& node, const std::string& part) {
  return notes_of(node).find(part) != std::string::npos;
}

TEST(NvidiaSmiPartial, ARowThatLacksCellsIsNotedWithItsLine) {
  const Node node = read_nvidia_smi("\tGPU0\tGPU1\nGPU0\t X \nGPU1\tNV18\t X \n", "file");
  EXPECT_EQ(cell_word(node, 0, 1), "NV18");
  EXPECT_TRUE(says(node, "1 cells are missing and were taken from the other half of the matrix "
                         "(GPU0-GPU1 in line 2)"))
      << notes_of(node);
}

TEST(NvidiaSmiPartial, WhatNeitherHalfHasIsUnknownWithItsPlace) {
  const Node node =
      read_nvidia_smi("GPU0 GPU1 NIC0 NIC1\nGPU0 X NV2 PIX\nGPU1 NV2 X SYS SYS\n", "file");
  EXPECT_EQ(cell_word(node, 0, 3), "?");
  EXPECT_EQ(cell_word(node, 1, 3), "SYS");
  EXPECT_TRUE(says(node, "1 distances are not in the text and stay unknown (GPU0-NIC1 in line 2)"))
      << notes_of(node);
  const Node one_row = read_nvidia_smi("GPU0 GPU1 GPU2\nGPU0 X NV2 NV2\n", "file");
  EXPECT_EQ(cell_word(one_row, 1, 2), "?");
  EXPECT_TRUE(says(one_row, "(GPU1-GPU2, whose row is missing)")) << notes_of(one_row);
}

TEST(NvidiaSmiPartial, ColumnsThatWereCutLeaveDistancesUnknown) {
  const Node node = read_nvidia_smi("\tGPU0\tGPU1\n"
                                    "GPU0\t X \tNV8\nGPU1\tNV8\t X \nGPU2\tNV8\tNV8\n"
                                    "NIC0\tPIX\tNODE\nNIC1\tNODE\tPIX\n",
                                    "file");
  EXPECT_EQ(cell_word(node, 0, 2), "NV8");
  EXPECT_EQ(cell_word(node, 2, 3), "?");
  EXPECT_TRUE(says(node, "2 distances are not in the text")) << notes_of(node);
  ASSERT_EQ(node.remarks.size(), 1U);
  EXPECT_NE(node.remarks[0].find("1 distances between NICs"), std::string::npos);
}

/// The cells of a matrix of two GPUs and three NICs, some of which are missing.
std::string text_without(unsigned hidden_rows, const std::vector<std::size_t>& cells_of_row) {
  const std::vector<std::string> labels = {"GPU0", "GPU1", "NIC0", "NIC1", "NIC2"};
  const std::vector<std::vector<std::string>> cells = {{"X", "NV18", "PIX", "NODE", "SYS"},
                                                       {"NV18", "X", "NODE", "PIX", "SYS"},
                                                       {"PIX", "NODE", "X", "PXB", "SYS"},
                                                       {"NODE", "PIX", "PXB", "X", "SYS"},
                                                       {"SYS", "SYS", "SYS", "SYS", "X"}};
  std::string text = "\tGPU0\tGPU1\tNIC0\tNIC1\tNIC2\n";
  for (std::size_t row = 0; row < labels.size(); ++row) {
    if (((hidden_rows >> row) & 1) != 0)
      continue;
    text += labels[row];
    for (std::size_t column = 0; column < cells_of_row[row]; ++column)
      text += "\t" + cells[row][column];
    text += "\n";
  }
  return text;
}

/// Whatever is missing: the rest is read as it is, and each gap is a note or a remark.
TEST(NvidiaSmiPartial, LessIsNeverRefusedWhereMoreIsReadAndNeverSilent) {
  const Node whole = read_nvidia_smi(text_without(0, {5, 5, 5, 5, 5}), "whole");
  ASSERT_TRUE(whole.notes.empty()) << whole.notes[0];
  std::mt19937 random(26);
  for (int round = 0; round < 500; ++round) {
    const unsigned hidden = (random() % 16) * 2; // a matrix begins with the row of a GPU
    std::vector<std::size_t> kept;
    bool lacking = hidden != 0;
    for (std::size_t row = 0; row < 5; ++row) {
      kept.push_back(random() % 3 == 0 ? 1 + random() % 5 : 5);
      const bool own_x_only =
          row == 4 && kept.back() == 4; // the last row's X carries no information
      lacking = lacking || (kept.back() < 5 && !own_x_only);
    }
    const std::string text = text_without(hidden, kept);
    const Node node = read_nvidia_smi(text, "part");
    ASSERT_EQ(node.gpus.size(), 2U) << text;
    ASSERT_EQ(node.nics.size(), 3U) << text;
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 5; ++j) {
        const auto printed = [&](int row, int column) {
          return ((hidden >> row) & 1) == 0 &&
                 kept[static_cast<std::size_t>(row)] > static_cast<std::size_t>(column);
        };
        const bool in_text = printed(i, j) || printed(j, i);
        ASSERT_EQ(cell_word(node, i, j), in_text || i == j ? cell_word(whole, i, j) : "?") << text;
      }
    ASSERT_EQ(lacking, !node.notes.empty() || !node.remarks.empty()) << text;
  }
}

TEST(NvidiaSmiPartial, TheLastWordOfATextThatEndsWithinALineIsNoCount) {
  const Node node = read_nvidia_smi("GPU0 GPU1 GPU2\nGPU0 X NV1", "file"); // NV18, cut
  EXPECT_EQ(cell_word(node, 0, 1), "?");
  const Node whole = read_nvidia_smi("GPU0 GPU1\nGPU0 X NV1\nGPU1 NV1 X", "file");
  EXPECT_EQ(cell_word(whole, 0, 1), "NV1");
}

TEST(NvidiaSmiPartial, ALineOfTitlesThatIsCutIsRefused) {
  EXPECT_THROW(read_nvidia_smi("GPU0 GPU1 NI\nGPU0 X PIX PIX\nGPU1 PIX X PIX\n", "file"), Error);
}

TEST(NvidiaSmiPartial, ByteOrderMarksAndBlanksOfPagesDoNotMatter) {
  const std::string plain = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tSYS\tPIX\nGPU1\tSYS\t X \tSYS\n"
                            "NIC0\tPIX\tSYS\t X \n\nNIC Legend:\n\n  NIC0: mlx5_0\n";
  std::string wide;
  for (const char c : plain)
    wide += c == ' ' ? "\xc2\xa0" : c == '\t' ? "\xe2\x80\x83\xe3\x80\x80" : std::string(1, c);
  for (const std::string& text : {"\xef\xbb\xbf" + plain, wide, "\xef\xbb\xbf" + wide}) {
    EXPECT_EQ(detect_format(text, "file"), TopoFormat::nvidia_smi);
    EXPECT_EQ(first_difference(read_nvidia_smi(plain, "a"), read_nvidia_smi(text, "b")), "");
  }
}

TEST(NvidiaSmiPartial, WithoutALegendTitlesAreLabelsAndNoNames) {
  const Node node =
      read_nvidia_smi("\tGPU0\tNIC0\tmlx5_7\nGPU0\t X \tPIX\tSYS\nNIC0\tPIX\t X \tSYS\n", "file");
  EXPECT_TRUE(node.nics[0].unnamed);
  EXPECT_FALSE(node.nics[1].unnamed) << "old releases title columns by device";
}

TEST(NvidiaSmiPartial, NumbersOfTheSourcesTitlesAreKept) {
  const Node node = read_nvidia_smi("GPU0 NIC0 NIC3\nGPU0 X PIX SYS\nNIC0 PIX X SYS\n"
                                    "NIC3 SYS SYS X\nNIC Legend:\n NIC0: mlx5_0\n NIC3: mlx5_3\n",
                                    "file");
  EXPECT_FALSE(node.nics[0].source_number.known());
  EXPECT_EQ(node.nics[1].source_number.value, 3);
}

TEST(NvidiaSmiPartial, NicsThatAreFoundAndNotShownAreCounted) {
  const std::string matrix = "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n";
  const Node node = read_nvidia_smi(
      "3 NICs found in the topology, only displaying 1 in the matrix.\n" + matrix, "file");
  EXPECT_EQ(node.hidden_nics, 2);
  EXPECT_TRUE(says(node, "line 1: the matrix shows 1 of 3 NICs")) << notes_of(node);
  EXPECT_EQ(read_nvidia_smi(matrix, "file").hidden_nics, 0);
  EXPECT_EQ(read_nvidia_smi("1 NICs found in the topology\n" + matrix, "file").hidden_nics, 0);
}

TEST(NvidiaSmiPartial, WordsThatDoNotMatchTheColumnTitlesAreIgnored) {
  // 168-223 and the NUMA node 1 were merged.
  const Node node =
      read_nvidia_smi("        GPU0    GPU1    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
                      "GPU0     X      SYS     0-55,112-167    0               N/A\n"
                      "GPU1    SYS      X      56-111,168-2231               N/A\n",
                      "file");
  for (const Gpu& gpu : node.gpus) {
    EXPECT_FALSE(gpu.cpus.known());
    EXPECT_FALSE(gpu.numa.known());
  }
  EXPECT_TRUE(says(node, "the CPU Affinity column is damaged and was not used (line 3)"))
      << notes_of(node);
  EXPECT_TRUE(says(node, "the NUMA Affinity column is damaged")) << notes_of(node);
  const Node untitled = read_nvidia_smi("GPU0 GPU1\nGPU0 X SYS 0-7\nGPU1 SYS X 8-15\n", "file");
  EXPECT_FALSE(untitled.gpus[0].cpus.known());
  EXPECT_TRUE(says(untitled, "line 2: the text after the cells has no title"));
}

TEST(NvidiaSmiPartial, ListsOfNumaNodesAndTheGpusOwnNodeAreKept) {
  for (const char* gap : {"\t", "\t\t"}) { // nvidia-smi itself writes two tabs
    const std::string tail(gap);
    const Node node = read_nvidia_smi("\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
                                      "GPU0\t X \tNV6\t0-71\t0,2-9" +
                                          tail + "4\nGPU1\tNV6\t X \t72-143\t1" + tail + "N/A\n",
                                      "file");
    EXPECT_FALSE(node.gpus[0].numa.known());
    EXPECT_EQ(node.gpus[0].numa_affinity.value, "0,2-9");
    EXPECT_EQ(node.gpus[0].memory_numa.value, 4);
    EXPECT_EQ(node.gpus[0].cpus.value, "0-71");
    EXPECT_EQ(node.gpus[1].numa.value, 1);
    EXPECT_FALSE(node.gpus[1].numa_affinity.known());
    EXPECT_FALSE(node.gpus[1].memory_numa.known());
    EXPECT_TRUE(node.notes.empty()) << notes_of(node);
  }
}

TEST(NvidiaSmiPartial, ASecondMatrixIsNoted) {
  const Node node = read_nvidia_smi("\tGPU0\tGPU1\nGPU0\t X \tPHB\nGPU1\tPHB\t X \n\nhost b:\n"
                                    "\tGPU0\tNIC0\nGPU0\t X \tPIX\nNIC0\tPIX\t X \n",
                                    "file");
  EXPECT_EQ(node.nics.size(), 0U);
  EXPECT_TRUE(says(node, "line 6: another matrix, which is not read")) << notes_of(node);
}

} // namespace
} // namespace shmemctl
