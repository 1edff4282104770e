// Events of the fake NVML: the first set that is registered gets them, in the order of the file,
// each once. Lines of its file, read again at each question, so that they may come later:
//   event TYPE DATA [PATIENCE]   comes to a wait of at least that many milliseconds (0)
//   event-types MASK             what the GPUs support (9: Xids, corrected ECC errors)
// An event of a type that was not registered is never given.
#include "tests/fake/fake_nvml_events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUCCESS 0
#define INVALID_ARGUMENT 2
#define TIMEOUT 10

typedef struct {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
} EventData;
typedef struct {
  void* device;
  unsigned long long types;
  int given;
} EventSet;

static int sets_in_use;

static FILE* open_file(void) {
  const char* path = getenv("FAKE_NVML_CONFIG");
  return path ? fopen(path, "r") : NULL;
}

static unsigned long long supported_types(void) {
  unsigned long long types = 9;
  char line[512];
  FILE* file = open_file();
  while (file && fgets(line, sizeof line, file))
    sscanf(line, "event-types %llu", &types);
  if (file)
    fclose(file);
  return types;
}

// For tests: sets that were created and not freed.
int fake_nvml_event_sets(void) {
  return sets_in_use;
}

int nvmlDeviceGetSupportedEventTypes(void* gpu, unsigned long long* types) {
  const int code = fake_nvml_refuses(__func__, gpu);
  *types = code == SUCCESS ? supported_types() : 0;
  return code;
}
int nvmlEventSetCreate(EventSet** set) {
  const int code = fake_nvml_refuses(__func__, NULL);
  if (code != SUCCESS)
    return code;
  *set = calloc(1, sizeof **set);
  ++sets_in_use;
  return SUCCESS;
}
// As the library does: one type that the GPU does not support, and nothing is registered.
int nvmlDeviceRegisterEvents(void* gpu, unsigned long long types, EventSet* set) {
  const int code = fake_nvml_refuses(__func__, gpu);
  if (code != SUCCESS)
    return code;
  if (types == 0 || (types & ~supported_types()) != 0)
    return INVALID_ARGUMENT;
  set->device = gpu;
  set->types = types;
  return SUCCESS;
}
int nvmlEventSetWait_v2(EventSet* set, EventData* data, unsigned timeout_ms) {
  const int code = fake_nvml_refuses(__func__, set->device);
  if (code != SUCCESS)
    return code;
  char line[512];
  FILE* file = open_file();
  int at = 0, found = 0;
  while (file && !found && fgets(line, sizeof line, file)) {
    unsigned patience_ms = 0;
    memset(data, 0, sizeof *data);
    if (sscanf(line, "event %llu %llu %u", &data->type, &data->data, &patience_ms) < 2)
      continue;
    found = at++ == set->given && patience_ms <= timeout_ms;
    if (found) {
      ++set->given;
      found = (data->type & set->types) != 0;
    }
  }
  if (file)
    fclose(file);
  data->device = set->device;
  return found ? SUCCESS : TIMEOUT;
}
int nvmlEventSetFree(EventSet* set) {
  --sets_in_use;
  free(set);
  return SUCCESS;
}
