"""Script that measures how smoothly a list scrolls in a browser."""

# Scrolls an element from end to end; takes its id and a number of seconds, and returns the milliseconds of each frame.
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
