"""How fluently a list scrolls in a browser."""

# Of an element's id and a number of seconds: it is scrolled from end to end; the milliseconds of each frame.
FRAMES = """async ([id, seconds]) => {
  const box = document.getElementById(id);
  const times = [];
  let last = performance.now();
  const start = last;
  while (last - start < 1000 * seconds) {
    const now = await new Promise(requestAnimationFrame);
    times.push(now - last);
    last = now;
    box.scrollTop = (box.scrollHeight - box.clientHeight) * (now - start) / (1000 * seconds);
  }
  return times.slice(1);
}"""
