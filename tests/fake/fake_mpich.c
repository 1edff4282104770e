// What a library that is another MPI says about itself.
#include <string.h>

int MPI_Get_library_version(char* text, int* length) {
  strcpy(text, "MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7 12:34:45 CDT 2022\n");
  *length = (int)strlen(text);
  return 0;
}
