// Three ops in one dispatch, from C.
// snippet: program
#include <brontes/brontes.h>
#include <stdio.h>

int main(void) {
  brontes_error error;
  brontes_device* device = NULL;
  brontes_batch* batch = NULL;
  if (brontes_device_open(NULL, &device, &error) != BRONTES_OK) goto failed;
  if (brontes_batch_create(device, NULL, &batch, &error) != BRONTES_OK) goto failed;

  const float input[] = {1, 2, -3, 4}, halves[] = {.5f, .5f, .5f, .5f};
  brontes_tensor x = brontes_upload(batch, input, 4, NULL, 0);
  brontes_tensor b = brontes_upload(batch, halves, 4, NULL, 0);
  brontes_tensor out = brontes_add(batch, brontes_scale(batch, brontes_relu(batch, x), 2), b);

  float y[4];
  if (brontes_batch_execute(batch, &error) != BRONTES_OK) goto failed;
  if (brontes_batch_read(batch, out, y, 4, &error) != BRONTES_OK) goto failed;
  printf("%g %g %g %g\n", y[0], y[1], y[2], y[3]);  // 2.5 4.5 0.5 8.5

  brontes_batch_destroy(batch);
  brontes_device_destroy(device);
  return 0;

failed:
  fprintf(stderr, "%s: %s\n", brontes_status_name(error.status), error.message);
  brontes_batch_destroy(batch);
  brontes_device_destroy(device);
  return 1;
}
// end
