#include "reports/csv.h"

#include <gtest/gtest.h>
#include <limits>

#include "tests/unit/reports/samples.h"

namespace shmemctl {
namespace {

TEST(Csv, ResultsAreFlattened) {
  Report report = sample_report();
  report.results[1].reason = "no \"peer\",\nsorry";
  report.results[0].link_fraction = std::numeric_limits<double>::quiet_NaN();
  report.results[0].path =
      RowPath{PathEnd{0, "node7"}, PathEnd{2, "node8"}, {"libfabric"}, {"eth0"}};
  EXPECT_EQ(
      write_csv(report),
      "case,scope,size_bytes,n,min,p50,p90,p99,max,mean,stddev,mad,unit,"
      "bandwidth_GBps,wire_GBps,rate_Mops,link_fraction,limited_by,verified,status,reason,"
      "path,p999,algbw_GBps,busbw_GBps,counted_GBps\r\n"
      "put,block,4096,50,1.0,1.5,2.0,,3.0,1.6,0.2,0.15,us,12.5,9.375,0.625,,mlx5_0/"
      "1,passed,pass,,PE 0 (node7) -> PE 2 (node8) by libfabric eth0,,,,\r\n"
      "put,block,4096,,,,,,,,,,us,,,,,,unchecked,skip,\"no \"\"peer\"\",\\x0asorry\",,,,,\r\n");
}

TEST(Csv, TextIsNoFormulaAndNumbersStayNumbers) {
  Report report;
  report.findings = {{"=1+1", Severity::info, "+cmd|' /C calc'!A0", "@SUM(A1)", "-rf"},
                     {"-5", Severity::info, "-1.5e-05", "\tcell", "a=b"},
                     {"\"=1\"", Severity::info, "=1,2", "a;=1", "\x1b[2J\r\n\xc2\x9b"}};
  EXPECT_EQ(write_csv(report),
            "id,severity,subject,message,fix\r\n"
            "'=1+1,info,'+cmd|' /C calc'!A0,'@SUM(A1),'-rf\r\n"
            "-5,info,-1.5e-05,\\x09cell,a=b\r\n"
            "\"\"\"=1\"\"\",info,\"'=1,2\",\"a;=1\",\\x1b[2J\\x0d\\x0a\\xc2\\x9b\r\n");
  report.findings = {{"\uff1d1+1", Severity::info, "\uff0b1", "\uff0dcmd", "\uff20SUM(A1)"}};
  EXPECT_NE(write_csv(report).find("'\uff1d1+1,info,'\uff0b1,'\uff0dcmd,'\uff20SUM(A1)\r\n"),
            std::string::npos);
  ResultRow row;
  row.case_name = "put";
  row.params = {{"=SUM(1)", "=2"}, {"change", -0.25}};
  row.stats = Stats{};
  row.stats->min = -1e-9;
  report.results = {row};
  const std::string csv = write_csv(report);
  EXPECT_EQ(csv.rfind("case,'=SUM(1),change,n,min,", 0), 0u) << csv;
  EXPECT_NE(csv.find("\r\nput,'=2,-0.25,0,-1e-09,"), std::string::npos) << csv;
}

TEST(Csv, ADoctorsReportGivesItsChecks) {
  Report report = sample_report();
  report.results.clear();
  EXPECT_EQ(write_csv(report),
            "id,group,title,status,reason,evidence,fix\r\n"
            "memlock,memory,locked memory,pass,unlimited,RLIMIT_MEMLOCK,\r\n"
            "peer-memory,gpu,GPU memory registration,fail,no module is loaded,/proc/modules,"
            "modprobe nvidia_peermem\r\n");
}

TEST(Csv, ATopoReportGivesARowPerPeAndNic) {
  Report report = sample_report();
  report.results.clear();
  report.checks.clear();
  report.mapping["pes"].push_back({{"pe", 2}, {"gpu", nullptr}, {"reason", "no NIC"}});
  EXPECT_EQ(write_csv(report),
            "pe,gpu,pci,numa,nic,port,distance,used,chosen_by,reason,source_findings\r\n"
            "0,0,0000:18:00.0,0,mlx5_0,1,PIX,true,distance,,\r\n"
            "1,1,0000:2a:00.0,,mlx5_0,1,SYS,true,distance,,\r\n"
            "2,,,,,,,,,no NIC,\r\n");
}

TEST(Csv, ATopoReportNamesWhatItsSourceLeftOut) {
  Report report = sample_report();
  report.results.clear();
  report.checks.clear();
  const Finding incomplete{"topology-incomplete", Severity::warning, "nccl-xml", "no <net>", "x"};
  report.findings = {{"nic-names-unknown", Severity::warning, "nccl-xml", "NIC0", "x"},
                     incomplete,
                     incomplete,
                     {"mapping-unknown", Severity::info, "PE 0", "only worth knowing", "x"}};
  EXPECT_NE(write_csv(report).find("mlx5_0,1,SYS,true,distance,,nic-names-unknown "
                                   "topology-incomplete\r\n"),
            std::string::npos)
      << write_csv(report);
}

TEST(Csv, AHotspotsReportGivesARowPerPort) {
  Report report = sample_report();
  report.results.clear();
  report.hotspots = sample_hotspots();
  EXPECT_EQ(
      write_csv(report),
      "host,device,port,netdev,link_Gbps,link_Gbps_reason,sent_GBps,sent_bytes,"
      "sent_link_share,sent_peak_GBps,sent_GBps_reason,received_GBps,received_bytes,"
      "received_link_share,received_peak_GBps,received_GBps_reason,direction,window_s,hot,pes,"
      "pes_reason\r\n"
      "node7,mlx5_0,1,ib0,400.0,,40.0,400000000000,0.8,44.5,,1.0,10000000000,0.02,,,sent,10.0,"
      "true,0 1,\r\n"
      "node7,eth0,1,eth0,,not told,,,,,it was reset,,,,,it was reset,unknown,10.0,false,,no "
      "mapping was asked for\r\n");
}

TEST(Csv, AReportWithNothingElseGivesItsFindings) {
  Report report;
  report.findings = {{"a-b", Severity::info, "s", "m", "f"}};
  EXPECT_EQ(write_csv(report), "id,severity,subject,message,fix\r\na-b,info,s,m,f\r\n");
}

TEST(Csv, RefusesATableThatWouldNotFitMemory) {
  Report report;
  report.results.resize(5000);
  for (std::size_t i = 0; i < report.results.size(); ++i)
    report.results[i].params["p" + std::to_string(i)] = 1;
  EXPECT_THROW(write_csv(report), Error);
}

} // namespace
} // namespace shmemctl
