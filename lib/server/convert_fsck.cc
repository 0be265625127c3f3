// SPDX-License-Identifier: Apache-2.0
#include "server/convert.h"

namespace devmgr::server {

pb::FsckReport ToProto(const FsckReport& report) {
  pb::FsckReport message;
  message.set_ledger_sequence(report.ledger_sequence);
  for (const FsckFinding& finding : report.findings) {
    pb::FsckFinding* to = message.add_findings();
    to->set_check(ValidUtf8(finding.check));
    to->set_error(finding.error);
    to->set_object(ValidUtf8(finding.object));
    to->set_message(ValidUtf8(finding.message));
    to->set_repair(ValidUtf8(finding.repair));
    to->set_hint(ValidUtf8(finding.hint));
  }
  for (const FsckRepair& repair : report.repairs) {
    pb::FsckRepair* to = message.add_repairs();
    to->set_object(ValidUtf8(repair.object));
    to->set_action(ValidUtf8(repair.action));
    to->set_error(ValidUtf8(repair.error));
  }
  return message;
}

FsckReport FromProto(const pb::FsckReport& report) {
  FsckReport result;
  result.ledger_sequence = report.ledger_sequence();
  for (const pb::FsckFinding& finding : report.findings()) {
    result.findings.push_back({finding.check(), finding.error(),
                               finding.object(), finding.message(),
                               finding.repair(), finding.hint()});
  }
  for (const pb::FsckRepair& repair : report.repairs()) {
    result.repairs.push_back(
        {repair.object(), repair.action(), repair.error()});
  }
  return result;
}

}  // namespace devmgr::server
