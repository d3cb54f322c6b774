// RUN: opt --pass-pipeline='annotate,simplify,fuse,plan,kernels,host,lower-host,legalize-for-target,lower-to-llvm' --split-input-file %s | filecheck %s

// A kernel over vectors: its last one is loaded and stored under a mask.
func.func @main(%x: tensor<?xf32, [@s]>, %y: tensor<?xf32, [@s]>) -> tensor<?xf32, [@s]> {
  %0 = stablehlo.multiply %x, %y : tensor<?xf32, [@s]>
  return %0 : tensor<?xf32, [@s]>
}
// CHECK-LABEL: llvm.func @loop_multiply(
// CHECK: llvm.cond_br
// CHECK: %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<[[LANES:[0-9]+]]xf32>
// CHECK: %[[Y:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<[[LANES]]xf32>
// CHECK-NEXT: %[[Z:.*]] = llvm.fmul %[[X]], %[[Y]] : vector<[[LANES]]xf32>
// CHECK: llvm.store %[[Z]],
// CHECK: llvm.intr.masked.load
// CHECK: llvm.intr.masked.store
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @loop_multiply_entry(
// CHECK-NOT: builtin.unrealized_conversion_cast
// CHECK: llvm.call @loop_multiply(

// -----

// Halves are integers in memory, and are widened, and rounded again, by hand.
func.func @main(%x: tensor<?xbf16, [@s]>, %y: tensor<?xbf16, [@s]>) -> tensor<?xbf16, [@s]> {
  %0 = stablehlo.multiply %x, %y : tensor<?xbf16, [@s]>
  return %0 : tensor<?xbf16, [@s]>
}
// CHECK-LABEL: llvm.func @loop_multiply(
// CHECK: %[[X:.*]] = llvm.load %{{.*}} : !llvm.ptr -> vector<[[LANES:[0-9]+]]xi16>
// CHECK-NEXT: %[[INTEGER:.*]] = llvm.zext %[[X]] : vector<[[LANES]]xi16> to vector<[[LANES]]xi32>
// CHECK-NEXT: %[[HIGH:.*]] = llvm.shl %[[INTEGER]],
// CHECK-NEXT: %[[WIDE:.*]] = llvm.bitcast %[[HIGH]] : vector<[[LANES]]xi32> to vector<[[LANES]]xf32>
// CHECK: llvm.fmul %[[WIDE]], %{{.*}} : vector<[[LANES]]xf32>
// CHECK: %[[ROUNDED:.*]] = llvm.trunc {{.*}} to vector<[[LANES]]xi16>
// CHECK: llvm.store %[[ROUNDED]],
// CHECK-NOT: bf16
// CHECK-LABEL: llvm.func @loop_multiply_entry(

// -----

// The sums of rows: loops are branches between blocks, and an array is an address, an offset, sizes and strides.
func.func @main(%x: tensor<?x?xf32, [@b, @s]>) -> tensor<?xf32, [@b]> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<?x?xf32, [@b, @s]>, tensor<f32>) -> tensor<?xf32, [@b]>
  return %0 : tensor<?xf32, [@b]>
}
// CHECK-LABEL: llvm.func @row_reduce(
// CHECK: llvm.br ^[[ROWS:bb[0-9]+]](%{{.*}} : i64)
// CHECK-NEXT: ^[[ROWS]](%[[ROW:.*]]: i64):
// CHECK-NEXT: %[[MORE:.*]] = llvm.icmp "slt" %[[ROW]],
// CHECK-NEXT: llvm.cond_br %[[MORE]],
// CHECK: llvm.fadd {{.*}} : vector<{{[0-9]+}}xf32>
// CHECK: %[[SUM:.*]] = llvm.fadd {{.*}} : f32
// CHECK: llvm.store %[[SUM]], {{.*}} : f32, !llvm.ptr
// CHECK: llvm.br ^[[ROWS]](
// CHECK-LABEL: llvm.func @row_reduce_entry(
// CHECK-NOT: builtin.unrealized_conversion_cast
// CHECK: llvm.call @row_reduce({{.*}} : (!llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, !llvm.ptr, !llvm.ptr, i64, i64, i64, i64, i64, i64, i64) -> ()
